"""One row of a table: everything that is known of a case, and how findings name rows and groups."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from rnnbench.domain.result import Interval, Status
from rnnbench.domain.system import Device, Precision
from rnnbench.domain.workload import Phase
from rnnbench.stats.intervals import Floats, Series, ratio


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Every field of a table's row; times in seconds. None: not measured."""

    workload: str
    system: str
    framework: str
    granularity: str
    execution: str
    phase: Phase
    device: Device
    precision: Precision
    environment: str
    status: Status
    reason: str = ""
    wall_s: float | None = None
    wall_low_s: float | None = None
    wall_high_s: float | None = None
    elapsed_s: float | None = None
    batches: int | None = None
    batch: int | None = None  # sequences in one
    sequences_per_s: float | None = None
    ratio: float | None = None  # to the best verified row of the same group
    ratio_low: float | None = None
    ratio_high: float | None = None
    best: bool = False
    import_s: float | None = None
    build_s: float | None = None
    first_call_s: float | None = None
    warm_up_s: float | None = None  # first call and all batches until steady: some compile in the second call
    compile_s: float | None = None  # the warm-up beyond what as many steady batches take
    limit_s: float | None = None  # the least time the machine needs for the batch's work
    limit_share: float | None = None  # limit over wall
    limit_share_low: float | None = None
    limit_share_high: float | None = None
    peak_host_bytes: int | None = None
    peak_device_bytes: int | None = None
    parameter_count: int | None = None
    threads: int | None = None
    launches: int = 0
    noisy: bool = False  # every launch of some round was marked noisy
    worst_error: float | None = None
    worst_quantity: str = ""
    stage: str = ""
    log_tail: str = ""
    description: str = ""
    seed_label: str = ""
    operators: float | None = None  # of one batch, from a profile: kernels on a GPU. None: not profiled
    host_share: float | None = None  # of a batch in which no operator runs, or the device waits
    bottleneck: str = ""
    new_batch_s: float | None = None  # what another batch size costs beyond a warm call
    new_batch: str = ""  # kept, rebuilt, uncounted or anew
    new_length_s: float | None = None
    new_length: str = ""

    @property
    def group(self) -> tuple[str, Phase, Device, Precision]:
        return (self.workload, self.phase, self.device, self.precision)


class MeasuredRow(msgspec.Struct, frozen=True):
    """A row with what it is made of, for whoever compares it with another."""

    row: Row
    draws: Floats | None = None  # replicates of its wall time; None: it has no time
    series: tuple[Series, ...] = ()  # its launches

    @property
    def wall(self) -> Interval:
        assert self.row.wall_low_s is not None
        assert self.row.wall_s is not None
        assert self.row.wall_high_s is not None
        return Interval(self.row.wall_low_s, self.row.wall_s, self.row.wall_high_s)


class Group(msgspec.Struct, frozen=True):
    """Rows that differ in who computes and in nothing else: one machine, workload, phase, device, precision."""

    run: int  # which of the runs given, from 0: two runs may be of two machines
    workload: str
    phase: Phase
    device: Device
    precision: Precision

    def __str__(self) -> str:
        return f"{self.workload} · {self.phase} · {self.device} · {self.precision}"


class RowId(msgspec.Struct, frozen=True):
    """One row of a group."""

    system: str
    environment: str

    def __str__(self) -> str:
        return f"{self.system} @ {self.environment}"


def row_id(row: Row) -> RowId:
    return RowId(row.system, row.environment)


def short_names(rows: Iterable[Row]) -> dict[RowId, str]:
    """The system alone where that is clear; with its environment where a system is there in several."""
    everyone = {row_id(row) for row in rows}
    times = Counter(one.system for one in everyone)
    return {one: str(one) if times[one.system] > 1 else one.system for one in everyone}


def is_verified(row: Row) -> bool:
    """Proved and timed: the only rows anything is said about."""
    return row.status == "verified" and row.wall_s is not None


def over(one: MeasuredRow, base: MeasuredRow) -> Interval:
    """How many times as long one row takes as another."""
    if one is base:
        return Interval(1.0, 1.0, 1.0)
    assert one.draws is not None
    assert base.draws is not None
    return ratio(one.wall.estimate, one.draws, base.wall.estimate, base.draws)


def memory_of(row: Row) -> int | None:
    """On the device where the row ran on one, else of the process."""
    return row.peak_device_bytes if row.peak_device_bytes is not None else row.peak_host_bytes
