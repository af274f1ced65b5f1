"""The ratio of two times, each measured by a few launches, with an interval that holds what it promises.

A bootstrap of three launches knows three values and is too sure of itself: where launches differ more than
samples do, its 95 % intervals hold the truth three times in four. Here launches are taken as draws from a
normal law on the log scale, the same on both sides of a case, its variance moderated by the other cases';
the interval is Student's.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rnnbench.stats.bootstrap import Interval
from rnnbench.stats.moderate import moderate
from rnnbench.stats.student import student_95


class Level(NamedTuple):
    """What the launches of a case say together, on the log scale."""

    log_wall: float  # of all seconds over all batches, as in the tables
    squares: float  # of the launches' own times about their mean, summed
    freedom: int  # launches less one
    share: float  # sum of the squares of the launches' weights: 1/launches where they are alike


def level(launches: Sequence[tuple[int, float]]) -> Level:
    """From batches and seconds of each launch."""
    batches = sum(count for count, _ in launches)
    times = [math.log(seconds / count) for count, seconds in launches]
    mean = sum(times) / len(times)
    return Level(
        log_wall=math.log(sum(seconds for _, seconds in launches) / batches),
        squares=sum((time - mean) ** 2 for time in times),
        freedom=len(times) - 1,
        share=sum((count / batches) ** 2 for count, _ in launches),
    )


def ratios(pairs: Sequence[tuple[Level, Level]]) -> list[Interval | None]:
    """How many times as long the second of each pair takes; None where neither has a second launch."""
    freedoms = np.array([float(base.freedom + other.freedom) for base, other in pairs])
    squares = np.array([base.squares + other.squares for base, other in pairs])
    known = freedoms > 0
    found: list[Interval | None] = [None] * len(pairs)
    if not known.any():
        return found
    variances, freedom = moderate(squares[known] / freedoms[known], freedoms[known])
    for index, variance, count in zip(np.flatnonzero(known).tolist(), variances, freedom, strict=True):
        base, other = pairs[index]
        error = math.sqrt(variance * (base.share + other.share))
        found[index] = around(other.log_wall - base.log_wall, error, count)
    return found


def around(log_ratio: float, error: float, freedom: float) -> Interval:
    """The 95 % interval of a ratio, from its logarithm and the standard error of that."""
    reach = student_95(freedom) * error
    return Interval(math.exp(log_ratio - reach), math.exp(log_ratio), math.exp(log_ratio + reach))


def of_single_launches(
    log_ratio: float, base: Sequence[float], other: Sequence[float], allowances: tuple[float, float]
) -> Interval:
    """A coarse interval where each side has one launch, from the samples of the two.

    How launches differ is unknown then. Each may be off by its allowance, a share of its time, and the
    interval is wider by both: what lies beyond it still is a difference.
    """
    errors = [(_error_of_mean(samples), len(samples) - 1) for samples in (base, other)]
    freedom = sum(count for _, count in errors)
    sampling = student_95(freedom) * math.hypot(*(error for error, _ in errors)) if freedom else 0.0
    reach = sampling + sum(math.log1p(allowance) for allowance in allowances)
    return Interval(math.exp(log_ratio - reach), math.exp(log_ratio), math.exp(log_ratio + reach))


def _error_of_mean(samples: Sequence[float]) -> float:
    if len(samples) < 2:
        return 0.0
    return float(np.log(samples).std(ddof=1)) / math.sqrt(len(samples))


def together(levels: Sequence[Level], rounds: Sequence[Mapping[int, float]]) -> Level:
    """The geometric mean of many cases as one level, measured once in each round.

    `rounds` has the logarithm of each case's time in each round. What touches all cases of a round alike
    (heat, a neighbour) is in how the rounds' means differ; cases taken as independent would hide it.
    """
    departures: dict[int, list[float]] = {}
    for case in rounds:
        mean = sum(case.values()) / len(case)
        for number, time in case.items():
            departures.setdefault(number, []).append(time - mean)
    means = [sum(values) / len(values) for values in departures.values()]
    centre = sum(means) / len(means)
    return Level(
        log_wall=sum(one.log_wall for one in levels) / len(levels),
        squares=sum((mean - centre) ** 2 for mean in means),
        freedom=len(means) - 1,
        share=1 / len(means),
    )
