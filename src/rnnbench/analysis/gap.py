"""The gap: what the fine-grained program costs as it stands, and how much of that each execution wins back."""

from collections.abc import Sequence

import msgspec
import numpy as np

from rnnbench.analysis.best import is_verified, over
from rnnbench.analysis.names import Who, who
from rnnbench.analysis.rows import Measured
from rnnbench.stats.bootstrap import Interval, independent, interval
from rnnbench.stats.difference import Verdict, judge


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of the same fine-grained program, in the same environment."""

    row: Who
    against_eager: Interval  # its time over the eager row's
    verdict: Verdict
    share: Interval | None  # of the gap on a log scale: 0 as slow as eager, 1 as fast as the best row


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """Fine-grained eager over the best verified row of the group."""

    eager: Who
    best: Who
    times: Interval
    seen: bool  # whether the two are told apart at all; where not, there is nothing to recover
    recovered: tuple[Recovered, ...]


def find_gaps(rows: Sequence[Measured]) -> tuple[Gap, ...]:
    """Of one group: one for each framework and environment that has the fine-grained program."""
    verified = [one for one in rows if is_verified(one.row)]
    best = next((one for one in verified if one.row.best), None)
    if best is None:
        return ()
    fine = [one for one in verified if one.row.granularity == "fine"]
    return tuple(_gap(one, best, fine) for one in fine if one.row.execution == "eager")


def _gap(eager: Measured, best: Measured, fine: Sequence[Measured]) -> Gap:
    times = over(eager, best)
    seen = judge(times) == "slower"
    return Gap(
        eager=who(eager.row),
        best=who(best.row),
        times=times,
        seen=seen,
        recovered=tuple(
            _recovered(one, eager, best, seen) for one in fine if one is not eager and _program(one) == _program(eager)
        ),
    )


def _program(one: Measured) -> tuple[str, str]:
    return one.row.framework, one.row.environment


def _recovered(one: Measured, eager: Measured, best: Measured, seen: bool) -> Recovered:
    against = over(one, eager)
    return Recovered(
        row=who(one.row),
        against_eager=against,
        verdict=judge(against),
        share=_share(one, eager, best) if seen else None,
    )


def _share(one: Measured, eager: Measured, best: Measured) -> Interval:
    if one is best:
        return Interval(1.0, 1.0, 1.0)
    assert one.draws is not None
    assert eager.draws is not None
    assert best.draws is not None
    mine, slow, fast = independent(one.draws, eager.draws, best.draws)
    is_gap = slow > fast  # in a few replicates there may be none, and no share of it
    closed = np.log(slow / mine)[is_gap] / np.log(slow / fast)[is_gap]
    estimate = np.log(eager.wall.estimate / one.wall.estimate) / np.log(eager.wall.estimate / best.wall.estimate)
    return interval(float(estimate), closed)
