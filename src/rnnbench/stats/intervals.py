"""The one interval: of a time, of a ratio of times, of a share of a gap; and when a ratio counts as a difference.

A time is an estimate on the log scale with a standard error (`Level`), a ratio is a difference of two of them, and
every interval is Student's t around it. Tables, sentences, comparisons and charts all have their figures from here.
"""

import math
from collections.abc import Sequence
from typing import Literal

from rnnbench.domain.result import Interval
from rnnbench.stats.launch_means import Level
from rnnbench.stats.student import student_95


def interval_of(level: Level) -> Interval:
    """Of the time itself, in seconds per batch."""
    return interval_around(level.log, level.error, level.freedom)


def interval_around(log: float, error: float, freedom: float) -> Interval:
    """The 95 % confidence interval of a quantity, from its logarithm and the standard error of the logarithm."""
    reach = student_95(freedom) * error
    return Interval(_exp(log - reach), _exp(log), _exp(log + reach))


def _exp(log: float) -> float:
    """Of any logarithm: two launches that have nothing in common have an interval without end, not an error."""
    return math.exp(min(max(log, -700.0), 700.0))


def quotient(over: Sequence[Level], under: Sequence[Level]) -> Interval:
    """The product of some times over the product of others; all were measured independently."""
    levels = (*over, *under)
    log = sum(level.log for level in over) - sum(level.log for level in under)
    return interval_around(log, math.hypot(*(level.error for level in levels)), _freedom(levels, [1.0] * len(levels)))


def ratio(level: Level, base: Level, alike: bool = False) -> Interval:
    """How many times as long as the base it takes.

    `alike` where both are one case, in two runs or two versions: then their launches vary alike, and what each side
    knows about that adds up. A small difference is found more often.
    """
    if not alike:
        return quotient([level], [base])
    lent = (
        0.0 if math.isinf(level.own) or math.isinf(base.own) else max(each.freedom - each.own for each in (level, base))
    )
    return interval_around(level.log - base.log, math.hypot(level.error, base.error), level.own + base.own + lent)


def share_of_gap(level: Level, slow: Level, fast: Level) -> Interval | None:
    """log(slow / it) over log(slow / fast), by E. C. Fieller (1940); None if the gap is too uncertain to bound it."""
    gap, closed = slow.log - fast.log, slow.log - level.log
    share = closed / gap
    point = student_95(_freedom((level, slow, fast), (1.0, 1 - share, share)))
    v_level, v_slow, v_fast = ((point * each.error) ** 2 for each in (level, slow, fast))
    # The shares x for which closed - x·gap is no further from 0 than its error: a·x² - 2·b·x + c <= 0.
    a, b, c = gap**2 - v_slow - v_fast, closed * gap - v_slow, closed**2 - v_slow - v_level
    if a <= 0:
        return None
    root = math.sqrt(max(b * b - a * c, 0.0))
    return Interval(min((b - root) / a, share), share, max((b + root) / a, share))


def break_even(cost: float, level: Level, slow: Level) -> Interval:
    """After how many batches a time lower than `slow` has made up for a cost in seconds; the cost is taken as known."""
    times = math.exp(level.log - slow.log)
    slopes = (times / (1 - times), 1 / (1 - times))  # of log(batches) in the two log times
    error = math.hypot(*(slope * each.error for slope, each in zip(slopes, (level, slow), strict=True)))
    batches = cost / (math.exp(slow.log) - math.exp(level.log))
    factor = math.exp(min(student_95(_freedom((level, slow), slopes)) * error, 50.0))
    return Interval(batches / factor, batches, batches * factor)


def _freedom(levels: Sequence[Level], slopes: Sequence[float]) -> float:
    """Of a sum of independent log times: by F. E. Satterthwaite (1946), but no fewer than the least of all have.

    What the cases of a run lend each other is one estimate, the same on all sides: to count it for each would promise
    too much. So a side counts with its own degrees of freedom, and with less than these the more of its error is lent.
    """
    parts = [(slope * level.error) ** 2 for level, slope in zip(levels, slopes, strict=True)]
    least = min(level.freedom for level in levels)
    known = sum(
        part**2 * level.freedom / level.own**2
        for part, level in zip(parts, levels, strict=True)
        if not math.isinf(level.own)  # a constant is exact
    )
    return max(sum(parts) ** 2 / known, least) if known else least


#: Two rows that are closer than this are not distinguished, however many samples there are: starting a
#: program again, or moving it in memory, changes its time by as much.
NOISE = 0.02
SpeedVerdict = Literal["faster", "slower", "no difference seen"]


def difference_verdict(ratio: Interval, noise: float = NOISE) -> SpeedVerdict:
    """What a ratio of times says about its numerator. The inverse ratio says exactly the opposite."""
    if ratio.low > 1 + noise:
        return "slower"
    if ratio.high < 1 / (1 + noise):
        return "faster"
    return "no difference seen"
