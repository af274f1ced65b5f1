"""The best row of a group, who cannot be told from it, and what it costs in memory and compile time."""

from collections.abc import Sequence

import msgspec

from rnnbench.analysis.names import Who, who
from rnnbench.analysis.rows import Measured, Row
from rnnbench.stats.bootstrap import Interval, ratio
from rnnbench.stats.difference import judge


class Best(msgspec.Struct, frozen=True, kw_only=True):
    """The verified row with the lowest time. It is the fastest only where `level` is empty and `others` is not 0."""

    row: Who
    wall_s: Interval
    others: int  # verified rows beside it
    level: tuple[Who, ...]  # those among them from which no difference is seen, fastest first
    next: Who | None = None  # the fastest that is seen to be slower
    next_ratio: Interval | None = None  # its time over the best's
    compile_s: float | None = None
    memory_bytes: int | None = None
    least_memory: Who | None = None  # the verified row that needs least, where that is another one
    least_memory_bytes: int | None = None


def find_best(rows: Sequence[Measured]) -> Best | None:
    """Of one group; None where no row is verified."""
    verified = sorted((one for one in rows if is_verified(one.row)), key=lambda one: one.wall.estimate)
    best = next((one for one in verified if one.row.best), None)
    if best is None:
        return None
    others = [one for one in verified if one is not best]
    against = [over(one, best) for one in others]
    slower = [index for index, times in enumerate(against) if judge(times) == "slower"]
    lean = min(verified, key=lambda one: memory_of(one.row) or float("inf"))
    return Best(
        row=who(best.row),
        wall_s=best.wall,
        others=len(others),
        level=tuple(who(one.row) for index, one in enumerate(others) if index not in slower),
        next=who(others[slower[0]].row) if slower else None,
        next_ratio=against[slower[0]] if slower else None,
        compile_s=best.row.compile_s,
        memory_bytes=memory_of(best.row),
        least_memory=who(lean.row) if lean is not best else None,
        least_memory_bytes=memory_of(lean.row) if lean is not best else None,
    )


def is_verified(row: Row) -> bool:
    """Proved and timed: the only rows anything is said about."""
    return row.status == "verified" and row.wall_s is not None


def over(one: Measured, base: Measured) -> Interval:
    """How many times as long one row takes as another."""
    if one is base:
        return Interval(1.0, 1.0, 1.0)
    assert one.draws is not None
    assert base.draws is not None
    return ratio(one.wall.estimate, one.draws, base.wall.estimate, base.draws)


def memory_of(row: Row) -> int | None:
    """On the device where the row ran on one, else of the process."""
    return row.peak_device_bytes if row.peak_device_bytes is not None else row.peak_host_bytes
