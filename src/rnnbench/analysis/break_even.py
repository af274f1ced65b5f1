"""After how many batches a compiled row has paid for its compile time, against running the same program eagerly."""

from collections.abc import Sequence

import msgspec
import numpy as np

from rnnbench.analysis.best import is_verified, over
from rnnbench.analysis.names import Who, who
from rnnbench.analysis.rows import Measured
from rnnbench.stats.bootstrap import Interval, independent, interval
from rnnbench.stats.difference import Verdict, judge


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    """`batches` is None where it never pays: the row is slower, or not seen to be faster."""

    row: Who
    eager: Who
    against_eager: Interval  # its time over the eager row's
    verdict: Verdict
    cost_s: float  # compile time beyond the eager row's own start
    batches: Interval | None


def find_break_evens(rows: Sequence[Measured]) -> tuple[BreakEven, ...]:
    """Of one group: for every verified row whose framework runs the same granularity eagerly as well."""
    verified = [one for one in rows if is_verified(one.row)]
    eager = {_program(one): one for one in verified if one.row.execution == "eager"}
    return tuple(
        _break_even(one, eager[_program(one)])
        for one in verified
        if one.row.execution != "eager" and _program(one) in eager
    )


def _program(one: Measured) -> tuple[str, str, str]:
    return one.row.framework, one.row.granularity, one.row.environment


def _break_even(one: Measured, eager: Measured) -> BreakEven:
    assert one.draws is not None
    assert eager.draws is not None
    against = over(one, eager)
    verdict = judge(against)
    cost = max(0.0, (one.row.compile_s or 0.0) - (eager.row.compile_s or 0.0))
    batches = None
    if verdict == "faster":
        mine, theirs = independent(one.draws, eager.draws)
        saved = theirs - mine
        # A few replicates may save nothing.
        draws = np.divide(cost, saved, out=np.full_like(saved, np.inf), where=saved > 0)
        batches = interval(cost / (eager.wall.estimate - one.wall.estimate), draws)
    return BreakEven(
        row=who(one.row), eager=who(eager.row), against_eager=against, verdict=verdict, cost_s=cost, batches=batches
    )
