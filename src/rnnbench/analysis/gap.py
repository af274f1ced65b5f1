"""The best row of a group, the gap between fine-grained eager and it, and when compiling pays.

The gap is the price of flexibility. Each execution of the fine-grained program wins back a share of it.
"""

from collections.abc import Sequence

import msgspec

from rnnbench.analysis.row import MeasuredRow, RowId, is_loop, is_slower, is_verified, memory_of, over, row_id
from rnnbench.domain.result import Interval
from rnnbench.stats.intervals import SpeedVerdict, break_even, difference_verdict, share_of_gap


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of the same fine-grained program, in the same environment."""

    row: RowId
    against_eager: Interval  # its time over the eager row's
    verdict: SpeedVerdict
    share: (
        Interval | None
    )  # of the gap on a log scale: 0 as slow as eager, 1 as fast as the best row; None: no clear gap


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """Fine-grained eager over the best verified row of the group."""

    eager: RowId
    best: RowId
    times: Interval
    seen: bool  # whether a difference is seen at all; where not, there is nothing to recover
    recovered: tuple[Recovered, ...]


def find_gaps(rows: Sequence[MeasuredRow]) -> tuple[Gap, ...]:
    """Of one group: one gap for each framework and environment that has the fine-grained program."""
    verified = [measured for measured in rows if is_verified(measured.row)]
    best = next((measured for measured in verified if measured.row.best), None)
    if best is None:
        return ()
    fine = [measured for measured in verified if measured.row.granularity == "fine"]
    return tuple(_gap(measured, best, fine) for measured in fine if is_loop(measured.row))


def _gap(eager: MeasuredRow, best: MeasuredRow, fine: Sequence[MeasuredRow]) -> Gap:
    seen = is_slower(eager.row)
    return Gap(
        eager=row_id(eager.row),
        best=row_id(best.row),
        times=over(eager, best),
        seen=seen,
        recovered=tuple(
            _recovered(other, eager, best, seen)
            for other in fine
            if other is not eager and _program(other) == _program(eager)
        ),
    )


def _recovered(other: MeasuredRow, eager: MeasuredRow, best: MeasuredRow, seen: bool) -> Recovered:
    against_eager = over(other, eager)
    return Recovered(
        row=row_id(other.row),
        against_eager=against_eager,
        verdict=difference_verdict(against_eager),
        share=_share(other, eager, best) if seen else None,
    )


def _share(other: MeasuredRow, eager: MeasuredRow, best: MeasuredRow) -> Interval | None:
    if other is best:
        return Interval(1.0, 1.0, 1.0)
    return share_of_gap(other.known_level, eager.known_level, best.known_level)


class Best(msgspec.Struct, frozen=True, kw_only=True):
    """The verified row with the lowest time. It is the fastest only where `level` is empty and `others` is not 0."""

    row: RowId
    wall_s: Interval
    others: int  # how many other verified rows there are
    level: tuple[RowId, ...]  # those of them from which no difference is seen, fastest first
    next: RowId | None = None  # the fastest that is seen to be slower
    next_ratio: Interval | None = None  # its time over the best row's
    compile_s: float | None = None
    memory_bytes: int | None = None
    least_memory: RowId | None = None  # the verified row that needs the least, if it is another one
    least_memory_bytes: int | None = None


def find_best(rows: Sequence[MeasuredRow]) -> Best | None:
    """Of one group; None where no row is verified."""
    verified = sorted((each for each in rows if is_verified(each.row)), key=lambda each: each.wall.estimate)
    best = next((each for each in verified if each.row.best), None)
    if best is None:
        return None
    others = [each for each in verified if each is not best]
    slower = [each for each in others if is_slower(each.row)]
    leanest = min(verified, key=lambda each: memory_of(each.row) or float("inf"))
    return Best(
        row=row_id(best.row),
        wall_s=best.wall,
        others=len(others),
        level=tuple(row_id(each.row) for each in others if not is_slower(each.row)),
        next=row_id(slower[0].row) if slower else None,
        next_ratio=over(slower[0], best) if slower else None,
        compile_s=best.row.compile_s,
        memory_bytes=memory_of(best.row),
        least_memory=row_id(leanest.row) if leanest is not best else None,
        least_memory_bytes=memory_of(leanest.row) if leanest is not best else None,
    )


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    """When a row has made up for its compile time, against the same program run eagerly."""

    row: RowId
    eager: RowId
    against_eager: Interval  # its time over the eager row's
    verdict: SpeedVerdict
    cost_s: float  # compile time less the eager row's own
    batches: Interval | None  # None: it never pays, as the row is slower or not seen to be faster


def find_break_evens(rows: Sequence[MeasuredRow]) -> tuple[BreakEven, ...]:
    """Of one group: for every verified row whose framework also runs the same granularity eagerly."""
    verified = [measured for measured in rows if is_verified(measured.row)]
    eager = {_program(measured): measured for measured in verified if measured.row.execution == "eager"}
    return tuple(
        _break_even(measured, eager[_program(measured)])
        for measured in verified
        if measured.row.execution != "eager" and _program(measured) in eager
    )


def _program(measured: MeasuredRow) -> tuple[str, str, str]:
    return measured.row.framework, measured.row.granularity, measured.row.environment


def _break_even(compiled: MeasuredRow, eager: MeasuredRow) -> BreakEven:
    against_eager = over(compiled, eager)
    verdict = difference_verdict(against_eager)
    cost = max(0.0, (compiled.row.compile_s or 0.0) - (eager.row.compile_s or 0.0))
    return BreakEven(
        row=row_id(compiled.row),
        eager=row_id(eager.row),
        against_eager=against_eager,
        verdict=verdict,
        cost_s=cost,
        batches=break_even(cost, compiled.known_level, eager.known_level) if verdict == "faster" else None,
    )
