"""A small fixed computation, timed before and after each launch: when it moves, the machine was busy."""

import time

import numpy as np

_SLICES = 60
_LOOPS = 100


def probe_seconds() -> float:
    """A fixed piece of arithmetic, about 3 ms on a current core, timed for about 0.2 s.

    The lower quartile: short bursts of other work pass, a neighbour that stays is seen. It works in
    the first-level cache and allocates nothing, so that only the processor's time is measured.
    """
    data = np.linspace(0.1, 1.0, 4096)
    result = np.empty_like(data)
    times = np.empty(_SLICES)
    for index in range(_SLICES):
        start = time.perf_counter()
        for _ in range(_LOOPS):
            np.sin(data, out=result)
            np.multiply(data, result, out=result)
            np.sqrt(result, out=result)
        times[index] = time.perf_counter() - start
    return float(np.quantile(times, 0.25))


def moved(before: float, after: float, threshold: float) -> bool:
    """Whether the two differ by more than the threshold, whichever is larger."""
    return max(before, after) > min(before, after) * (1 + threshold)
