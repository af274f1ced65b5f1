"""A small fixed computation, timed before and after each launch: when it moves, the machine was busy."""

import time

import numpy as np

_REPEATS = 7


def probe_seconds() -> float:
    """The median time of a fixed piece of arithmetic, about 5 ms each time on a current core."""
    data = np.linspace(0.1, 1.0, 200_000)
    times: list[float] = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        for _ in range(3):
            np.sqrt(np.sin(data) * data + 1.0).sum()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def moved(before: float, after: float, threshold: float) -> bool:
    """Whether the two differ by more than the threshold, whichever is larger."""
    return max(before, after) > min(before, after) * (1 + threshold)
