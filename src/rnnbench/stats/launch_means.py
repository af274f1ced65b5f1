"""The ratio of two times, each measured by a few launches, with an interval that holds what it promises.

A bootstrap of three launches knows three values and is too sure of itself: where launches differ more than
samples do, its 95 % intervals hold the truth three times in four. Here launches are taken as draws from a
normal law on the log scale, the same on both sides of a case, its variance moderated by the other cases';
the interval is Student's.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rnnbench.domain.result import Interval
from rnnbench.stats.intervals import Floats


class LaunchMean(NamedTuple):
    """What the launches of a case say together, on the log scale."""

    log_wall: float  # of all seconds over all batches, as in the tables
    squares: float  # of the launches' own times about their mean, summed
    freedom: int  # launches less one
    share: float  # sum of the squares of the launches' weights: 1/launches where they are alike


def launch_mean(launches: Sequence[tuple[int, float]]) -> LaunchMean:
    """From batches and seconds of each launch."""
    batches = sum(count for count, _ in launches)
    times = [math.log(seconds / count) for count, seconds in launches]
    mean = sum(times) / len(times)
    return LaunchMean(
        log_wall=math.log(sum(seconds for _, seconds in launches) / batches),
        squares=sum((time - mean) ** 2 for time in times),
        freedom=len(times) - 1,
        share=sum((count / batches) ** 2 for count, _ in launches),
    )


def ratio_intervals(pairs: Sequence[tuple[LaunchMean, LaunchMean]]) -> list[Interval | None]:
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
        found[index] = interval_around(other.log_wall - base.log_wall, error, count)
    return found


def interval_around(log_ratio: float, error: float, freedom: float) -> Interval:
    """The 95 % interval of a ratio, from its logarithm and the standard error of that."""
    reach = student_95(freedom) * error
    return Interval(math.exp(log_ratio - reach), math.exp(log_ratio), math.exp(log_ratio + reach))


def single_launch_interval(
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


def mean_over_cases(levels: Sequence[LaunchMean], rounds: Sequence[Mapping[int, float]]) -> LaunchMean:
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
    return LaunchMean(
        log_wall=sum(one.log_wall for one in levels) / len(levels),
        squares=sum((mean - centre) ** 2 for mean in means),
        freedom=len(means) - 1,
        share=1 / len(means),
    )


def moderate(variances: Floats, freedoms: Floats) -> tuple[Floats, Floats]:
    """Variances and degrees of freedom, moderated. Every freedom must be at least 1."""
    positive = variances > 0
    if positive.sum() < 2:
        return variances, freedoms
    pooled_freedom = float(freedoms.sum())
    prior, prior_freedom = _prior(variances[positive], freedoms[positive])
    if math.isinf(prior_freedom):  # they scatter no more than chance does: one variance for all
        common = float(freedoms @ variances) / pooled_freedom
        return np.full_like(variances, common), np.full_like(freedoms, pooled_freedom)
    moderated = (prior_freedom * prior + freedoms * variances) / (prior_freedom + freedoms)
    # However alike the cases look, together they know no more than was measured.
    return moderated, np.minimum(freedoms + prior_freedom, pooled_freedom)


def _prior(variances: Floats, freedoms: Floats) -> tuple[float, float]:
    """The usual variance, and as how many degrees of freedom it counts: from the scatter of the logarithms."""
    halves = freedoms / 2
    logs = np.log(variances) - _each(_digamma, halves) + np.log(halves)
    beyond_chance = float(logs.var(ddof=1) - _each(_trigamma, halves).mean())
    if beyond_chance <= 1e-6:
        return math.exp(float(logs.mean())), math.inf
    half = _inverse_trigamma(beyond_chance)
    return math.exp(float(logs.mean()) + _digamma(half) - math.log(half)), 2 * half


def _each(function: Callable[[float], float], values: Floats) -> Floats:
    """The function of every value; most cases have the same few numbers of launches."""
    distinct, where = np.unique(values, return_inverse=True)
    computed: Floats = np.array([function(float(value)) for value in distinct])[where]
    return computed


def _digamma(x: float) -> float:
    """The derivative of log Γ: steps up to where the asymptotic series is good."""
    steps = 0.0
    while x < 8:
        steps, x = steps - 1 / x, x + 1
    over = 1 / (x * x)
    return steps + math.log(x) - 0.5 / x - over * (1 / 12 - over * (1 / 120 - over / 252))


def _trigamma(x: float) -> float:
    """The derivative of the digamma function."""
    steps = 0.0
    while x < 8:
        steps, x = steps + 1 / (x * x), x + 1
    over = 1 / (x * x)
    return steps + 1 / x + over / 2 + over / x * (1 / 6 - over * (1 / 30 - over / 42))


def _inverse_trigamma(y: float) -> float:
    """Where the trigamma function is y: it falls all the way, so halving finds it."""
    low, high = -20.0, 20.0  # of the logarithm
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _trigamma(math.exp(middle)) > y else (low, middle)
    return math.exp((low + high) / 2)


#: The two-sided 95 % points for 1, 2, … 10 degrees of freedom.
_FEW = (12.7062, 4.3027, 3.1825, 2.7765, 2.5706, 2.4470, 2.3647, 2.3061, 2.2622, 2.2282)
_NORMAL = 1.959964


@lru_cache(maxsize=1024)
def student_95(freedom: float) -> float:
    """The two-sided 95 % point for any degrees of freedom from 1 up, infinity included.

    Between whole numbers a straight line in 1/freedom: the curve bends upwards, so it errs to the wide
    side. From 10 up the expansion about the normal's point, right to four figures.
    """
    if freedom < 1:
        raise ValueError(f"{freedom} degrees of freedom say nothing of a spread")
    if freedom <= len(_FEW):
        return float(np.interp(-1 / freedom, [-1 / count for count in range(1, len(_FEW) + 1)], _FEW))
    z, over = _NORMAL, 1 / freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return float(z + over * (first + over * (second + over * third)))
