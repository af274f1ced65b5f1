"""The level of a case, from its launches: the mean of their log times, its standard error and degrees of freedom.

The launch is the unit. Its log time is the logarithm of its seconds per batch, and all launches of a case have the
same weight: the one that took the most samples, because it was noisy, counts no more than the others. How much launches
differ is estimated from few of them, so the variance of a case is moderated by those of the other cases of its run.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rnnbench.stats.student import digamma, inverse_trigamma, trigamma

#: The standard deviation between launches, on the log scale, of a case with one launch in a run that does not tell it.
#: From 44 cases with two launches each on a shared machine with 2 cores (archive/eight-years-ce-short as it was at
#: c51aff6 in the history): 0.099 remains between their launches when what the samples explain is subtracted.
SINGLE_LAUNCH = 0.10

#: A run's own variance takes its place from this many degrees of freedom on; with fewer it says less than a constant.
_ENOUGH = 3.0


class Level(NamedTuple):
    """What is known about the time of a case, on the log scale."""

    log: float  # seconds per batch
    error: float  # standard error
    freedom: float  # degrees of freedom of the error, those lent by other cases included
    own: float  # without those: they count once, however many cases of the run are combined


class Spread(NamedTuple):
    """How much the launches of a typical case of a run differ, and the degrees of freedom that it lends to each."""

    variance: float
    freedom: float


def level_of(logs: Sequence[float], samples: Sequence[float], spread: Spread | None) -> Level:
    """From the log time of each launch. `samples` are the log times of the blocks, where there is a single launch."""
    mean = sum(logs) / len(logs)
    own = float(len(logs) - 1)
    if not own:
        return _single_launch(mean, samples, spread)
    variance = sum((log - mean) ** 2 for log in logs) / own
    freedom = own
    if spread is not None:
        freedom = own + spread.freedom
        variance = (spread.freedom * spread.variance + own * variance) / freedom
    return Level(mean, math.sqrt(variance / len(logs)), freedom, own)


def _single_launch(log: float, samples: Sequence[float], spread: Spread | None) -> Level:
    """Its samples say nothing about other launches. It is off by as much as launches of the run usually are."""
    within = float(np.var(samples, ddof=1)) / len(samples) if len(samples) > 1 else 0.0
    if spread is None or spread.freedom < _ENOUGH:
        spread = Spread(SINGLE_LAUNCH**2, math.inf)
    return Level(log, math.sqrt(spread.variance + within), spread.freedom, spread.freedom)


def spread_of(cases: Iterable[Sequence[float]]) -> Spread | None:
    """Of a run, from the log times of each case's launches. None: too few cases have several launches.

    The empirical Bayes estimate of G. K. Smyth (2004): the scatter of the cases' variances, beyond what chance
    explains, says how alike they are. Few cases can look alike by chance, so their scatter is raised by its own
    standard error, and a case lends a third of a degree of freedom at most (benchmarks/coverage.py shows why).
    """
    known = [(float(np.var(logs, ddof=1)), len(logs) - 1) for logs in cases if len(logs) > 1]
    positive = [(variance, count) for variance, count in known if variance > 0]
    most = (len(positive) - 2) / 3
    if most <= 0:
        return None
    halves = [count / 2 for _, count in positive]
    logs = np.log([variance for variance, _ in positive]) - [digamma(half) - math.log(half) for half in halves]
    chance = sum(map(trigamma, halves)) / len(halves)
    scatter = float(logs.var(ddof=1))
    cautious = scatter + max(scatter, chance) * math.sqrt(2 / (len(positive) - 1))
    if cautious - chance <= 1e-6:
        return Spread(math.exp(float(logs.mean())), most)
    half = inverse_trigamma(cautious - chance)
    return Spread(math.exp(float(logs.mean()) + digamma(half) - math.log(half)), min(2 * half, most))


def mean_over_cases(cases: Sequence[Level], rounds: Sequence[dict[int, float]]) -> Level | None:
    """The geometric mean of many cases, as if it were one case with one launch per round; None if there is one round.

    `rounds` holds the logarithm of each case's time in each round. What affects all cases of a round alike (heat,
    other processes) shows in the differences between rounds; treating cases as independent would hide it.
    """
    deviations: dict[int, list[float]] = {}
    for times in rounds:
        mean = sum(times.values()) / len(times)
        for number, time in times.items():
            deviations.setdefault(number, []).append(time - mean)
    means = [sum(values) / len(values) for values in deviations.values()]
    if len(means) < 2:
        return None
    freedom = float(len(means) - 1)
    error = float(np.std(means, ddof=1)) / math.sqrt(len(means))
    return Level(sum(case.log for case in cases) / len(cases), error, freedom, freedom)
