"""How findings name what they are about: a group of rows that may be compared, and one row in it."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from rnnbench.analysis.rows import Row
from rnnbench.domain.system import Device, Precision
from rnnbench.domain.workload import Phase


class Group(msgspec.Struct, frozen=True):
    """Rows that differ in who computes and in nothing else: one machine, workload, phase, device, precision."""

    run: int  # which of the runs given, from 0: two runs may be of two machines
    workload: str
    phase: Phase
    device: Device
    precision: Precision

    def __str__(self) -> str:
        return f"{self.workload} · {self.phase} · {self.device} · {self.precision}"


class Who(msgspec.Struct, frozen=True):
    """One row of a group."""

    system: str
    environment: str

    def __str__(self) -> str:
        return f"{self.system} @ {self.environment}"


def who(row: Row) -> Who:
    return Who(row.system, row.environment)


def short_names(rows: Iterable[Row]) -> dict[Who, str]:
    """The system alone where that is clear; with its environment where a system is there in several."""
    everyone = {who(row) for row in rows}
    times = Counter(one.system for one in everyone)
    return {one: str(one) if times[one.system] > 1 else one.system for one in everyone}
