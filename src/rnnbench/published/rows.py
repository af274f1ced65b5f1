"""The rows of the published tables (Braun 2018, Carrot 2019), read from the CSV files beside this module.

`carrot-2019.csv` holds the tables of two documents of Carrot as they were printed, with their contradictions and
misspelt labels; rows that were left blank there have no times. `braun-2018.csv` holds the means (and in one table
the standard deviations) of Braun, in milliseconds.
"""

import csv
from functools import lru_cache
from pathlib import Path

import msgspec

from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.system import version_key


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a table comes from, and how its figures were measured."""

    title: str
    software: str
    batches: int  # timed, after the discarded ones
    discarded: int
    protocol: str  # the `--protocol` that measures in the same way
    link: str = ""


_CARROT = Source(
    title="lcy-seso (2019), Carrot",
    software="TensorFlow 2.0.0-alpha0, PyTorch 1.3, CUDA 10.0, cuDNN 7.6.2, Ubuntu 16.04.2",
    batches=50,
    discarded=10,
    protocol="2019",
    link="https://github.com/lcy-seso/Carrot",
)
_BRAUN = Source(
    title="Braun (2018), LSTM benchmarks for deep learning frameworks",
    software="PyTorch, TensorFlow, Lasagne and Keras of April 2018, CUDA 9.0, cuDNN 7, Ubuntu 16.04",
    batches=400,
    discarded=100,
    protocol="2018",
    link="https://github.com/stefbraun/rnn_benchmarks",
)
TABLES = tuple(Path(__file__).with_name(name) for name in ("carrot-2019.csv", "braun-2018.csv"))
WITH_CONCLUSIONS = "carrot-2019 with conclusions"

#: By the `source` of a row.
SOURCES: dict[str, Source] = {
    WITH_CONCLUSIONS: _CARROT,
    "carrot-2019 tables alone": _CARROT,
    "braun-2018 framework comparison": _BRAUN,
    "braun-2018 PyTorch version comparison": _BRAUN,
}


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a published table; times in seconds. None: left blank, or the table has no such column."""

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
        """The name of the row in our tables."""
        return self.seed_label if self.label else f"{self.framework} {self.implementation}"

    @property
    def seed_label(self) -> str:
        """`PyTorch (fine-grained operators)`: what manifests give as `seed`, with misprints corrected."""
        label = self.label.replace("PyTroch", "PyTorch").replace("TF-Egaer", "TF-Eager")
        return f"{label} ({self.granularity})" if label else ""

    @property
    def when_and_where(self) -> str:
        """`2019, GeForce RTX 2080 Ti`."""
        return f"{self.year}, {self.hardware}"

    @property
    def batch(self) -> int:
        """Sequences per batch: the published tables all use their workload's own batch size."""
        return CATALOG[self.workload].batch


@lru_cache(maxsize=1)
def published_rows() -> tuple[Published, ...]:
    """All rows in the order they were printed, blank ones included."""
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


#: The implementations in PyTorch of Braun (2018), and the systems that are written in the same way.
_BRAUN_SYSTEMS = {
    "LSTMCell-basic": "pytorch/packed/eager",
    "LSTMCell-fused": "pytorch/cell/eager",
    "cuDNNLSTM": "pytorch/stack/eager",
}


def published_versions(system: str, workload: str, phase: str, precision: str = "fp32") -> tuple[Published, ...]:
    """The times of Braun (2018) for a system's versions of PyTorch, oldest first, one row per version."""
    by_version: dict[str, Published] = {}
    for row in published_rows():
        if (
            row.source.startswith("braun-2018")
            and row.framework.startswith("PyTorch ")
            and _BRAUN_SYSTEMS.get(row.implementation) == system
            and (row.workload, row.phase, "fp32") == (workload, phase, precision)
            and row.wall_s is not None
        ):
            # The version comparison comes last and replaces the other table: it has decimals and deviations.
            by_version[version_of(row)] = row
    return tuple(sorted(by_version.values(), key=lambda row: version_key(version_of(row))))


def version_of(row: Published) -> str:
    """`0.4.0` of `PyTorch 0.4.0`."""
    return row.framework.rpartition(" ")[2]


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
