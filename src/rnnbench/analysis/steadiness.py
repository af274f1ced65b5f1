"""Whether the times of a row were steady while they were sampled.

A worker says whether the time per batch had stopped falling when sampling began. The samples say the rest: those of a
launch that was not warm begin high and end low, and their mean is neither.
"""

import math
import statistics
from collections.abc import Sequence

import numpy as np

from rnnbench.domain.result import Launch
from rnnbench.stats.intervals import SpeedVerdict, difference_verdict, interval_around

DRIFT = 0.02  # smaller changes are noise
LARGE = 0.10  # a row that changed surely by more while it was sampled is not steady
APART = 1.20  # times: so far apart are the parts of a launch that is not steady, however few samples it has


def is_steady(launches: Sequence[Launch]) -> bool:
    """False if a launch was not warm, or its samples drift by much."""
    if any(launch.steady is False for launch in launches):
        return False
    if all(map(_plainly_steady, launches)):
        return True
    drifts = within_launches(launches, LARGE) != "no difference seen"
    return not drifts and not any(_falls_apart(launch) for launch in launches)


def _plainly_steady(launch: Launch) -> bool:
    """Whether nothing below could object. It is so for most rows, and a run has millions of samples."""
    times = [sample.seconds / sample.batches for sample in launch.samples]
    half = len(times) // 2
    if half < 2:
        return True
    change = sum(times[len(times) - half :]) / sum(times[:half])
    return max(times) <= APART * min(times) and max(change, 1 / change) <= 1.08


def within_launches(launches: Sequence[Launch], threshold: float = DRIFT) -> SpeedVerdict:
    """Whether the later half of a row's samples is faster or slower than the earlier half, over all launches."""
    early: list[float] = []
    late: list[float] = []
    for launch in launches:
        times = np.log([sample.seconds / sample.batches for sample in launch.samples])
        half = len(times) // 2
        centred = (times - times.mean()).tolist()
        early += centred[:half]
        late += centred[len(times) - half :]
    freedom = 2 * len(early) - 1 - len(launches)  # subtracting each launch's mean costs a degree of freedom
    if freedom < 1:
        return "no difference seen"
    squares = sum(((np.array(half) - np.mean(half)) ** 2).sum() for half in (early, late))
    error = math.sqrt(squares / freedom * 2 / len(early))
    return difference_verdict(interval_around(float(np.mean(late) - np.mean(early)), error, freedom), threshold)


def _falls_apart(launch: Launch) -> bool:
    """Whether all samples of one half lie far above the other half, or the first two are the slowest by far.

    Five samples that fall to a seventh vary so much that no test of their means sees it. One slow block is no drift.
    """
    times = [sample.seconds / sample.batches for sample in launch.samples]
    half = len(times) // 2
    if half < 2:
        return False
    early, late, rest = times[:half], times[len(times) - half :], times[2:]
    apart = min(early) > APART * max(late) or min(late) > APART * max(early)
    falling = times[0] > times[1] > max(rest) and statistics.fmean(times) > APART * statistics.median(rest)
    return apart or falling
