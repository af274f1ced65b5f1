"""The gap: what the fine-grained program costs as it stands, and how much of that each execution wins back."""

from collections.abc import Sequence

import msgspec
import numpy as np

from rnnbench.analysis.row import MeasuredRow, RowId, is_verified, memory_of, over, row_id
from rnnbench.domain.result import Interval
from rnnbench.stats.intervals import SpeedVerdict, difference_verdict, independent_draws, interval


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of the same fine-grained program, in the same environment."""

    row: RowId
    against_eager: Interval  # its time over the eager row's
    verdict: SpeedVerdict
    share: Interval | None  # of the gap on a log scale: 0 as slow as eager, 1 as fast as the best row


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """Fine-grained eager over the best verified row of the group."""

    eager: RowId
    best: RowId
    times: Interval
    seen: bool  # whether the two are told apart at all; where not, there is nothing to recover
    recovered: tuple[Recovered, ...]


def find_gaps(rows: Sequence[MeasuredRow]) -> tuple[Gap, ...]:
    """Of one group: one for each framework and environment that has the fine-grained program."""
    verified = [one for one in rows if is_verified(one.row)]
    best = next((one for one in verified if one.row.best), None)
    if best is None:
        return ()
    fine = [one for one in verified if one.row.granularity == "fine"]
    return tuple(_gap(one, best, fine) for one in fine if one.row.execution == "eager")


def _gap(eager: MeasuredRow, best: MeasuredRow, fine: Sequence[MeasuredRow]) -> Gap:
    times = over(eager, best)
    seen = difference_verdict(times) == "slower"
    return Gap(
        eager=row_id(eager.row),
        best=row_id(best.row),
        times=times,
        seen=seen,
        recovered=tuple(
            _recovered(one, eager, best, seen) for one in fine if one is not eager and _program(one) == _program(eager)
        ),
    )


def _program(one: MeasuredRow) -> tuple[str, str]:
    return one.row.framework, one.row.environment


def _recovered(one: MeasuredRow, eager: MeasuredRow, best: MeasuredRow, seen: bool) -> Recovered:
    against = over(one, eager)
    return Recovered(
        row=row_id(one.row),
        against_eager=against,
        verdict=difference_verdict(against),
        share=_share(one, eager, best) if seen else None,
    )


def _share(one: MeasuredRow, eager: MeasuredRow, best: MeasuredRow) -> Interval:
    if one is best:
        return Interval(1.0, 1.0, 1.0)
    assert one.draws is not None
    assert eager.draws is not None
    assert best.draws is not None
    mine, slow, fast = independent_draws(one.draws, eager.draws, best.draws)
    is_gap = slow > fast  # in a few replicates there may be none, and no share of it
    closed = np.log(slow / mine)[is_gap] / np.log(slow / fast)[is_gap]
    estimate = np.log(eager.wall.estimate / one.wall.estimate) / np.log(eager.wall.estimate / best.wall.estimate)
    return interval(float(estimate), closed)


class Best(msgspec.Struct, frozen=True, kw_only=True):
    """The verified row with the lowest time. It is the fastest only where `level` is empty and `others` is not 0."""

    row: RowId
    wall_s: Interval
    others: int  # verified rows beside it
    level: tuple[RowId, ...]  # those among them from which no difference is seen, fastest first
    next: RowId | None = None  # the fastest that is seen to be slower
    next_ratio: Interval | None = None  # its time over the best's
    compile_s: float | None = None
    memory_bytes: int | None = None
    least_memory: RowId | None = None  # the verified row that needs least, where that is another one
    least_memory_bytes: int | None = None


def find_best(rows: Sequence[MeasuredRow]) -> Best | None:
    """Of one group; None where no row is verified."""
    verified = sorted((one for one in rows if is_verified(one.row)), key=lambda one: one.wall.estimate)
    best = next((one for one in verified if one.row.best), None)
    if best is None:
        return None
    others = [one for one in verified if one is not best]
    against = [over(one, best) for one in others]
    slower = [index for index, times in enumerate(against) if difference_verdict(times) == "slower"]
    lean = min(verified, key=lambda one: memory_of(one.row) or float("inf"))
    return Best(
        row=row_id(best.row),
        wall_s=best.wall,
        others=len(others),
        level=tuple(row_id(one.row) for index, one in enumerate(others) if index not in slower),
        next=row_id(others[slower[0]].row) if slower else None,
        next_ratio=against[slower[0]] if slower else None,
        compile_s=best.row.compile_s,
        memory_bytes=memory_of(best.row),
        least_memory=row_id(lean.row) if lean is not best else None,
        least_memory_bytes=memory_of(lean.row) if lean is not best else None,
    )


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    """`batches` is None where it never pays: the row is slower, or not seen to be faster."""

    row: RowId
    eager: RowId
    against_eager: Interval  # its time over the eager row's
    verdict: SpeedVerdict
    cost_s: float  # compile time beyond the eager row's own start
    batches: Interval | None


def find_break_evens(rows: Sequence[MeasuredRow]) -> tuple[BreakEven, ...]:
    """Of one group: for every verified row whose framework runs the same granularity eagerly as well."""
    verified = [one for one in rows if is_verified(one.row)]
    eager = {_same_program(one): one for one in verified if one.row.execution == "eager"}
    return tuple(
        _break_even(one, eager[_same_program(one)])
        for one in verified
        if one.row.execution != "eager" and _same_program(one) in eager
    )


def _same_program(one: MeasuredRow) -> tuple[str, str, str]:
    return one.row.framework, one.row.granularity, one.row.environment


def _break_even(one: MeasuredRow, eager: MeasuredRow) -> BreakEven:
    assert one.draws is not None
    assert eager.draws is not None
    against = over(one, eager)
    verdict = difference_verdict(against)
    cost = max(0.0, (one.row.compile_s or 0.0) - (eager.row.compile_s or 0.0))
    batches = None
    if verdict == "faster":
        mine, theirs = independent_draws(one.draws, eager.draws)
        saved = theirs - mine
        # A few replicates may save nothing.
        draws = np.divide(cost, saved, out=np.full_like(saved, np.inf), where=saved > 0)
        batches = interval(cost / (eager.wall.estimate - one.wall.estimate), draws)
    return BreakEven(
        row=row_id(one.row),
        eager=row_id(eager.row),
        against_eager=against,
        verdict=verdict,
        cost_s=cost,
        batches=batches,
    )
