"""A small fixed computation, timed before and after each launch: when it moves, the machine was busy."""

import time

import numpy as np

from rnnbench.domain.result import Launch

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


def is_noisy(launch: Launch, threshold: float) -> bool:
    """Whether the processor's speed or the GPU's clock was another before the samples than after them."""
    return changed(launch.probe_before_s, launch.probe_after_s, threshold) or clocks_moved(launch, threshold)


def clocks_moved(launch: Launch, threshold: float) -> bool:
    """The GPU's clock; never where it is not known."""
    before, after = launch.gpu_before, launch.gpu_after
    return bool(before and after) and any(
        changed(getattr(before, clock), getattr(after, clock), threshold) for clock in ("sm_mhz", "memory_mhz")
    )


def changed(before: float | None, after: float | None, threshold: float) -> bool:
    return before is not None and after is not None and moved(before, after, threshold)
