"""The ratio of two times, each measured by a few launches, with an interval that has its nominal coverage.

A bootstrap of three launches has only three values and suffers from undercoverage: if launches differ more
than samples do, its 95 % intervals contain the truth three times in four. Here launches are independent draws
from a normal distribution of log times. Both sides of a case share its variance, which is moderated by the
variances of the other cases; the interval uses Student's t.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rnnbench.domain.result import Interval
from rnnbench.stats.intervals import Floats


class LaunchMean(NamedTuple):
    """The launches of one case together, on the log scale."""

    log_wall: float  # the logarithm of all seconds over all batches, as in the tables
    squares: float  # the sum of squared deviations of the launches' log times from their mean
    freedom: int  # degrees of freedom: launches minus one
    share: float  # the sum of the launches' squared weights: 1/launches if the weights are equal


def launch_mean(launches: Sequence[tuple[int, float]]) -> LaunchMean:
    """From the batches and seconds of each launch."""
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
    """How many times as long the second of each pair takes; None if neither has more than one launch."""
    freedoms = np.array([float(base.freedom + other.freedom) for base, other in pairs])
    squares = np.array([base.squares + other.squares for base, other in pairs])
    known = freedoms > 0
    intervals: list[Interval | None] = [None] * len(pairs)
    if not known.any():
        return intervals
    variances, freedom = moderate(squares[known] / freedoms[known], freedoms[known])
    for index, variance, count in zip(np.flatnonzero(known).tolist(), variances, freedom, strict=True):
        base, other = pairs[index]
        error = math.sqrt(variance * (base.share + other.share))
        intervals[index] = interval_around(other.log_wall - base.log_wall, error, count)
    return intervals


def interval_around(log_ratio: float, error: float, freedom: float) -> Interval:
    """The 95 % confidence interval of a ratio, from its logarithm and the standard error of the logarithm."""
    reach = student_95(freedom) * error
    return Interval(math.exp(log_ratio - reach), math.exp(log_ratio), math.exp(log_ratio + reach))


def single_launch_interval(
    log_ratio: float, base: Sequence[float], other: Sequence[float], allowances: tuple[float, float]
) -> Interval:
    """A coarse interval from the samples of two single launches.

    How much launches differ is unknown then. Each may be wrong by its allowance, a share of its time, and
    the interval is widened by both, so that a ratio beyond it still is a difference.
    """
    errors = [(_standard_error(samples), len(samples) - 1) for samples in (base, other)]
    freedom = sum(count for _, count in errors)
    sampling = student_95(freedom) * math.hypot(*(error for error, _ in errors)) if freedom else 0.0
    reach = sampling + sum(math.log1p(allowance) for allowance in allowances)
    return Interval(math.exp(log_ratio - reach), math.exp(log_ratio), math.exp(log_ratio + reach))


def _standard_error(samples: Sequence[float]) -> float:
    """Of the mean of the log times."""
    if len(samples) < 2:
        return 0.0
    return float(np.log(samples).std(ddof=1)) / math.sqrt(len(samples))


def mean_over_cases(cases: Sequence[LaunchMean], rounds: Sequence[Mapping[int, float]]) -> LaunchMean:
    """The geometric mean of many cases, as if it were one case with one launch per round.

    `rounds` holds the logarithm of each case's time in each round. What affects all cases of a round alike (heat,
    other processes) shows in the differences between rounds; treating cases as independent would hide it.
    """
    deviations: dict[int, list[float]] = {}
    for times in rounds:
        mean = sum(times.values()) / len(times)
        for number, time in times.items():
            deviations.setdefault(number, []).append(time - mean)
    means = [sum(values) / len(values) for values in deviations.values()]
    centre = sum(means) / len(means)
    return LaunchMean(
        log_wall=sum(case.log_wall for case in cases) / len(cases),
        squares=sum((mean - centre) ** 2 for mean in means),
        freedom=len(means) - 1,
        share=1 / len(means),
    )


def moderate(variances: Floats, freedoms: Floats) -> tuple[Floats, Floats]:
    """Moderated variances and degrees of freedom: each is drawn towards the others. Needs at least 1 degree each."""
    positive = variances > 0
    if positive.sum() < 2:
        return variances, freedoms
    pooled_freedom = float(freedoms.sum())
    prior, prior_freedom = _prior(variances[positive], freedoms[positive])
    if math.isinf(prior_freedom):  # they vary no more than by chance: one variance for all
        common = float(freedoms @ variances) / pooled_freedom
        return np.full_like(variances, common), np.full_like(freedoms, pooled_freedom)
    moderated = (prior_freedom * prior + freedoms * variances) / (prior_freedom + freedoms)
    # However similar the cases look, together they have no more degrees of freedom than were measured.
    return moderated, np.minimum(freedoms + prior_freedom, pooled_freedom)


def _prior(variances: Floats, freedoms: Floats) -> tuple[float, float]:
    """The prior variance and its degrees of freedom, from how much the logarithms of the variances vary."""
    halves = freedoms / 2
    logs = np.log(variances) - _map_distinct(_digamma, halves) + np.log(halves)
    beyond_chance = float(logs.var(ddof=1) - _map_distinct(_trigamma, halves).mean())
    if beyond_chance <= 1e-6:
        return math.exp(float(logs.mean())), math.inf
    half = _inverse_trigamma(beyond_chance)
    return math.exp(float(logs.mean()) + _digamma(half) - math.log(half)), 2 * half


def _map_distinct(function: Callable[[float], float], values: Floats) -> Floats:
    """The function of every value, computed once for equal values: most cases have the same number of launches."""
    distinct, where = np.unique(values, return_inverse=True)
    computed: Floats = np.array([function(float(value)) for value in distinct])[where]
    return computed


def _digamma(x: float) -> float:
    """The derivative of log Γ: recurrence up to where the asymptotic series is accurate."""
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
    """Where the trigamma function is y: it decreases monotonically, so bisection finds it."""
    low, high = -20.0, 20.0  # of the logarithm
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _trigamma(math.exp(middle)) > y else (low, middle)
    return math.exp((low + high) / 2)


#: The two-sided 95 % points of Student's t for 1, 2, … 10 degrees of freedom.
_STUDENT_POINTS = (12.7062, 4.3027, 3.1825, 2.7765, 2.5706, 2.4470, 2.3647, 2.3061, 2.2622, 2.2282)
_NORMAL_POINT = 1.959964


@lru_cache(maxsize=1024)
def student_95(freedom: float) -> float:
    """The two-sided 95 % point of Student's t for any degrees of freedom from 1 to infinity.

    Between whole numbers it is linear in 1/freedom: the curve is convex, so the interval is too wide rather than
    too narrow. Above 10 it is the expansion about the normal distribution's point, correct to four figures.
    """
    if freedom < 1:
        raise ValueError(f"{freedom} degrees of freedom are too few to estimate a variance")
    if freedom <= len(_STUDENT_POINTS):
        known = [-1 / count for count in range(1, len(_STUDENT_POINTS) + 1)]
        return float(np.interp(-1 / freedom, known, _STUDENT_POINTS))
    z, over = _NORMAL_POINT, 1 / freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return float(z + over * (first + over * (second + over * third)))
