"""Bootstrap intervals of times and ratios, and when a ratio counts as a difference.

The process is the unit of sampling: a replicate draws launches with replacement and, within each drawn
launch, its samples with replacement. The draws depend only on the numbers of launches and samples, so they
are made once, as weights, and a case costs two small matrix products.
"""

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnbench.domain.result import Interval

Floats = NDArray[np.float64]
REPLICATES = 1000
CONFIDENCE = 0.95


class Series(NamedTuple):
    """One launch: the batches and the seconds of each block."""

    batches: Floats
    seconds: Floats


def wall_time(launches: list[Series]) -> float:
    """Seconds per batch: all seconds over all batches, so that elapsed = batches × wall holds exactly."""
    return float(sum(s.seconds.sum() for s in launches) / sum(s.batches.sum() for s in launches))


def replicates(launches: list[Series]) -> Floats:
    """Bootstrap replicates of the wall time: seconds per batch."""
    slots = len(launches)
    seconds = np.empty((slots, slots, REPLICATES))  # launch, slot, replicate
    batches = np.empty((slots, slots, REPLICATES))
    for index, launch in enumerate(launches):
        weights = _sample_weights(len(launch.seconds), slots)
        seconds[index] = weights @ launch.seconds
        # The blocks of a launch nearly always have the same size: then every draw has the same number of batches.
        same = launch.batches.min() == launch.batches.max()
        batches[index] = launch.batches.sum() if same else weights @ launch.batches
    draws = _launch_draws(slots)
    drawn = (draws, np.arange(slots)[:, None], np.arange(REPLICATES)[None, :])
    total: Floats = seconds[drawn].sum(axis=0) / batches[drawn].sum(axis=0)
    return total


@lru_cache(maxsize=64)
def _launch_draws(launches: int) -> NDArray[np.int64]:
    """[slots, replicates]: which launch is drawn into each slot."""
    return np.random.default_rng((launches, 2)).integers(launches, size=(launches, REPLICATES))


@lru_cache(maxsize=64)
def _sample_weights(samples: int, slots: int) -> Floats:
    """[slots, replicates, samples]: how often each sample is drawn, for a launch drawn into a slot."""
    generator = np.random.default_rng((samples, slots, 1))
    counts = generator.multinomial(samples, np.full(samples, 1 / samples), size=(slots, REPLICATES))
    return counts.astype(np.float64)


def interval(estimate: float, draws: Floats) -> Interval:
    """The central 95 % of the replicates, widened if necessary to contain the estimate."""
    tail = round(len(draws) * (1 - CONFIDENCE) / 2)
    ordered = np.sort(draws)
    return Interval(min(float(ordered[tail]), estimate), estimate, max(float(ordered[-1 - tail]), estimate))


def ratio(estimate: float, draws: Floats, base_estimate: float, base_draws: Floats) -> Interval:
    """How many times as long as the base it takes; the two were measured independently."""
    numerator, denominator = independent_draws(draws, base_draws)
    return interval(estimate / base_estimate, numerator / denominator)


def independent_draws(*rows: Floats) -> list[Floats]:
    """Replicates of several rows, shifted against each other: they come from the same random numbers."""
    shift = REPLICATES // len(rows) + 1
    return [np.roll(draws, index * shift) for index, draws in enumerate(rows)]


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
