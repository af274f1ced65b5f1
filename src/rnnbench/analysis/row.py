"""One row of a table: everything that is known about a case, and the names of rows and groups."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from rnnbench.domain.result import Interval, Status
from rnnbench.domain.system import Device, Precision
from rnnbench.domain.workload import Phase
from rnnbench.stats.intervals import difference_verdict, interval_of, ratio
from rnnbench.stats.launch_means import Level


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row; times in seconds. None: not measured."""

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
    uncertain: bool = False  # the interval of the time is wider than ±20 %
    elapsed_s: float | None = None  # batches × wall
    batches: int | None = None
    batch: int | None = None  # sequences in one batch
    sequences_per_s: float | None = None
    ratio: float | None = None  # to the best verified row of the same group
    ratio_low: float | None = None
    ratio_high: float | None = None
    ratio_uncertain: bool = False
    best: bool = False
    import_s: float | None = None
    build_s: float | None = None
    first_call_s: float | None = None
    warm_up_s: float | None = None  # first call and all batches until steady: some systems compile in the second call
    compile_s: float | None = None  # the warm-up less the time of as many steady batches
    limit_s: float | None = None  # the least time the machine needs for the batch's work
    limit_share: float | None = None  # limit over wall
    limit_share_low: float | None = None
    limit_share_high: float | None = None
    above_limit: bool = False  # faster than the machine can be, even if its limit was measured badly: never best
    peak_host_bytes: int | None = None
    peak_device_bytes: int | None = None
    parameter_count: int | None = None
    threads: int | None = None
    launches: int = 0
    noisy: bool = False  # in some round every launch was marked noisy
    steady: bool | None = None  # False: not warm when sampling began, or the samples drift by much
    checked: str = ""  # what of the timed program was checked at full size; "": nothing
    worst_error: float | None = None
    worst_quantity: str = ""
    stage: str = ""
    log_tail: str = ""
    description: str = ""
    seed_label: str = ""
    operators: float | None = None  # in one batch, from a profile: kernels on a GPU. None: not profiled
    host_share: float | None = None  # of a batch: no operator runs, or the device waits for the host
    bottleneck: str = ""
    new_batch_s: float | None = None  # what the first call with another batch size costs beyond a warm call
    new_batch: str = ""  # kept, rebuilt, uncounted or anew
    new_length_s: float | None = None
    new_length: str = ""
    node: str = ""  # of a cluster, on which it was timed

    @property
    def group(self) -> tuple[str, Phase, Device, Precision]:
        return (self.workload, self.phase, self.device, self.precision)


class MeasuredRow(msgspec.Struct, frozen=True):
    """A row with the data it was computed from, so that it can be compared with other rows."""

    row: Row
    level: Level | None = None  # of its time. None: it has no time

    @property
    def known_level(self) -> Level:
        assert self.level is not None
        return self.level

    @property
    def wall(self) -> Interval:
        return interval_of(self.known_level)


class Group(msgspec.Struct, frozen=True):
    """Rows that differ only in system and environment. Rows are compared within a group."""

    run: int  # index of the run: two runs may come from two machines
    workload: str
    phase: Phase
    device: Device
    precision: Precision

    def __str__(self) -> str:
        return f"{self.workload} · {self.phase} · {self.device} · {self.precision}"


class RowId(msgspec.Struct, frozen=True):
    """Identifies one row of a group."""

    system: str
    environment: str

    def __str__(self) -> str:
        return f"{self.system} @ {self.environment}"


def row_id(row: Row) -> RowId:
    return RowId(row.system, row.environment)


def short_names(rows: Iterable[Row]) -> dict[RowId, str]:
    """The system's name, followed by the environment where the same system has rows in several environments."""
    ids = {row_id(row) for row in rows}
    environments = Counter(each.system for each in ids)
    return {each: str(each) if environments[each.system] > 1 else each.system for each in ids}


def is_verified(row: Row) -> bool:
    """Proved, timed, and not faster than the machine can be. Conclusions are drawn from these rows only."""
    return row.status == "verified" and row.wall_s is not None and not row.above_limit


def is_slower(row: Row) -> bool:
    """Whether it is seen to be slower than the best row of its group. Those that are not are level with the best."""
    if row.ratio is None or row.ratio_low is None or row.ratio_high is None:
        return False
    return difference_verdict(Interval(row.ratio_low, row.ratio, row.ratio_high)) == "slower"


def is_loop(row: Row) -> bool:
    """Whether it is the fine-grained program as it is written, run statement by statement: what flexibility costs."""
    return (row.granularity, row.execution) == ("fine", "eager")


def shown_status(row: Row) -> str:
    """`verified, not steady~`: the status with everything that a reader must know of the time beside it."""
    words: list[str] = [row.status]
    if row.steady is False:
        words.append("not steady")
    if row.above_limit:
        words.append("above the limit")
    return ", ".join(words) + ("~" if row.noisy else "")


def over(measured: MeasuredRow, base: MeasuredRow) -> Interval:
    """The ratio of the first row's time to the second's."""
    if measured is base:
        return Interval(1.0, 1.0, 1.0)
    return ratio(measured.known_level, base.known_level, alike=measured.row.system == base.row.system)


def memory_of(row: Row) -> int | None:
    """Peak memory: of the GPU if the row ran on one, else of the process."""
    return row.peak_device_bytes if row.peak_device_bytes is not None else row.peak_host_bytes
