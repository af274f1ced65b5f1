"""The published rows, read from the CSV files beside this module, one type for both.

`seed-tables-2019.csv` holds the tables of seeds 000 and 001 as they were printed, contradictions and
misspelt labels included; rows that were left blank there have no times. `braun-2018.csv` holds the
figures of seed 002, which gives a mean (and in one table a standard deviation) in milliseconds.
"""

import csv
from functools import lru_cache
from pathlib import Path

import msgspec

from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.system import version_key


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a table comes from, and how its figures were taken."""

    title: str
    software: str
    batches: int  # timed, after those that were discarded
    discarded: int
    protocol: str  # the `--protocol` that measures in the same way
    link: str = ""


_STUDY = Source(
    title="Flexibility and performance of LSTM networks in TensorFlow and PyTorch",
    software="TensorFlow 2.0.0-alpha0, PyTorch 1.3, CUDA 10.0, cuDNN 7.6.2, Ubuntu 16.04.2",
    batches=50,
    discarded=10,
    protocol="2019",
)
_BRAUN = Source(
    title="Stefan Braun, LSTM benchmarks for deep learning frameworks",
    software="PyTorch, TensorFlow, Lasagne and Keras of April 2018, CUDA 9.0, cuDNN 7, Ubuntu 16.04",
    batches=400,
    discarded=100,
    protocol="2018",
    link="https://github.com/stefbraun/rnn_benchmarks",
)
TABLES = tuple(Path(__file__).with_name(name) for name in ("seed-tables-2019.csv", "braun-2018.csv"))

#: By the `source` of a row.
SOURCES: dict[str, Source] = {
    "seed-000": _STUDY,
    "seed-001": _STUDY,
    "braun-2018 framework comparison": _BRAUN,
    "braun-2018 PyTorch version comparison": _BRAUN,
}

#: Labels as they were meant.
_MISSPELT = {"PyTroch": "PyTorch", "TF-Egaer": "TF-Eager"}


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a published table; times in seconds. None: left blank there, or not a column of it."""

    source: str  # a key of SOURCES
    year: int
    hardware: str
    device: str  # cpu or cuda, as everywhere in rnnbench
    workload: str
    phase: str
    granularity: str = ""  # 2019: the heading of its table
    label: str = ""  # 2019: as printed
    framework: str = ""  # 2018: with its version
    implementation: str = ""  # 2018
    wall_s: float | None = None
    wall_std_s: float | None = None  # 2018: standard deviation over batches
    elapsed_s: float | None = None
    sequences_per_s: float | None = None

    @property
    def name(self) -> str:
        """What the row is called in a table of ours."""
        return self.seed_label if self.label else f"{self.framework} {self.implementation}"

    @property
    def seed_label(self) -> str:
        """`PyTorch (fine-grained operators)`: what manifests give as `seed`, misprints put right."""
        label = self.label
        for wrong, right in _MISSPELT.items():
            label = label.replace(wrong, right)
        return f"{label} ({self.granularity})" if label else ""

    @property
    def when_and_where(self) -> str:
        """`2019, GeForce RTX 2080 Ti`."""
        return f"{self.year}, {self.hardware}"

    @property
    def batch(self) -> int:
        """Sequences a batch: the published tables all have their workload's own."""
        return CATALOG[self.workload].batch


@lru_cache(maxsize=1)
def published_rows() -> tuple[Published, ...]:
    """All of them, in the order they were printed; blank rows too."""
    return (
        *(_of_2019(line) for line in _read(TABLES[0])),
        *(_of_2018(line) for line in _read(TABLES[1])),
    )


def find_published(workload: str, phase: str, device: str, seed_label: str) -> list[Published]:
    """The published times of a system, by the label its manifest gives as `seed`."""
    wanted = seed_label.casefold()
    return [
        row
        for row in published_rows()
        if wanted
        and row.seed_label.casefold() == wanted
        and (row.workload, row.phase, row.device) == (workload, phase, device)
        and row.wall_s is not None
    ]


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


_DEVICES = {"CPU": "cpu", "GPU": "cuda"}


def _of_2019(line: dict[str, str]) -> Published:
    return Published(
        source=line["source"],
        year=int(line["year"]),
        hardware=line["hardware"],
        device=_DEVICES[line["device"]],
        workload=line["workload"],
        phase=line["phase"],
        granularity=line["granularity"],
        label=line["label"],
        wall_s=_number(line["wall_s"]),
        elapsed_s=_number(line["elapsed_s"]),
        sequences_per_s=_number(line["seq_per_s"]),
    )


def _of_2018(line: dict[str, str]) -> Published:
    mean, deviation = _number(line["mean_ms"]), _number(line["std_ms"])
    return Published(
        source=line["source"],
        year=int(line["year"]),
        hardware=line["hardware"],
        device=_DEVICES[line["device"]],
        workload=line["workload"],
        phase=line["phase"],
        framework=line["framework"],
        implementation=line["implementation"],
        wall_s=None if mean is None else mean / 1000,
        wall_std_s=None if deviation is None else deviation / 1000,
    )


def _number(text: str) -> float | None:
    return float(text) if text else None


_BRAUN_SOURCES = "braun-2018"
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
            row.source.startswith(_BRAUN_SOURCES)
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
