"""The bootstrap over launches and samples: the process is the unit of sampling.

A replicate draws launches with replacement and, within each drawn launch, its samples with replacement.
The draws depend only on how many launches and samples there are, so they are made once, as weights, and a
case costs two small matrix products.
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
    """One launch: batches and seconds of each block."""

    batches: Floats
    seconds: Floats


@lru_cache(maxsize=64)
def _sample_weights(samples: int, slots: int) -> Floats:
    """[slots, replicates, samples]: how often each sample is drawn for a launch that stands in a slot."""
    generator = np.random.default_rng((samples, slots, 1))
    counts = generator.multinomial(samples, np.full(samples, 1 / samples), size=(slots, REPLICATES))
    return counts.astype(np.float64)


@lru_cache(maxsize=64)
def _launch_draws(launches: int) -> NDArray[np.int64]:
    """[slots, replicates]: which launch stands in each slot."""
    return np.random.default_rng((launches, 2)).integers(launches, size=(launches, REPLICATES))


def replicates(launches: list[Series]) -> Floats:
    """Bootstrap replicates of the wall time: seconds over batches."""
    slots = len(launches)
    seconds = np.empty((slots, slots, REPLICATES))  # launch, slot, replicate
    batches = np.empty((slots, slots, REPLICATES))
    for index, launch in enumerate(launches):
        weights = _sample_weights(len(launch.seconds), slots)
        seconds[index] = weights @ launch.seconds
        # Blocks of one launch are nearly always of one size: then every draw has the same batches.
        same = launch.batches.min() == launch.batches.max()
        batches[index] = launch.batches.sum() if same else weights @ launch.batches
    draws = _launch_draws(slots)
    drawn = (draws, np.arange(slots)[:, None], np.arange(REPLICATES)[None, :])
    total: Floats = seconds[drawn].sum(axis=0) / batches[drawn].sum(axis=0)
    return total


def wall_time(launches: list[Series]) -> float:
    """Seconds a batch: all seconds over all batches, so that elapsed = batches × wall holds exactly."""
    return float(sum(s.seconds.sum() for s in launches) / sum(s.batches.sum() for s in launches))


def interval(estimate: float, draws: Floats) -> Interval:
    """The central 95 % of the replicates, widened where need be to hold the estimate."""
    tail = round(len(draws) * (1 - CONFIDENCE) / 2)
    ordered = np.sort(draws)
    return Interval(min(float(ordered[tail]), estimate), estimate, max(float(ordered[-1 - tail]), estimate))


def ratio(estimate: float, draws: Floats, base_estimate: float, base_draws: Floats) -> Interval:
    """How many times as long as the base; the two were measured independently of each other."""
    above, below = independent_draws(draws, base_draws)
    return interval(estimate / base_estimate, above / below)


def independent_draws(*rows: Floats) -> list[Floats]:
    """Replicates of several rows, to be combined: they come from the same random numbers, so put them out of step."""
    step = REPLICATES // len(rows) + 1
    return [np.roll(draws, index * step) for index, draws in enumerate(rows)]


#: Two rows closer than this are not told apart, however many samples there are: moving a program in
#: memory, or starting it again, changes its time by as much.
NOISE = 0.02
SpeedVerdict = Literal["faster", "slower", "no difference seen"]


def difference_verdict(ratio: Interval, noise: float = NOISE) -> SpeedVerdict:
    """What a ratio of times says of its numerator. Turned upside down it says the opposite, never more."""
    if ratio.low > 1 + noise:
        return "slower"
    if ratio.high < 1 / (1 + noise):
        return "faster"
    return "no difference seen"
