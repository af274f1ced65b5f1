"""The study of 2018 timed versions of PyTorch: its rows by the system that stands for them here."""

from rnnbench.domain.system import version_key
from rnnbench.published.rows import Published, published_rows

_STUDY = "braun-2018"
_FRAMEWORK = "PyTorch "

#: Its implementations, and the system that is written in the same way.
_SYSTEMS = {
    "LSTMCell-basic": "pytorch/packed/eager",
    "LSTMCell-fused": "pytorch/cell/eager",
    "cuDNNLSTM": "pytorch/stack/eager",
}


def published_versions(system: str, workload: str, phase: str, precision: str = "fp32") -> tuple[Published, ...]:
    """From old to new; one row a version. All on another machine, most on another device than a run's."""
    found: dict[str, Published] = {}
    for row in published_rows():
        if (
            row.source.startswith(_STUDY)
            and row.framework.startswith(_FRAMEWORK)
            and _SYSTEMS.get(row.implementation) == system
            and (row.workload, row.phase, "fp32") == (workload, phase, precision)
            and row.wall_s is not None
        ):
            # The comparison of versions comes last: it has decimals and deviations, the other table has not.
            found[version_of(row)] = row
    return tuple(sorted(found.values(), key=lambda row: version_key(version_of(row))))


def version_of(row: Published) -> str:
    """`0.4.0` of `PyTorch 0.4.0`."""
    return row.framework.rpartition(" ")[2]
