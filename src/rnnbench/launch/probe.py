"""How fast the processors are now: a fixed computation, timed."""

import time

import numpy as np

_SLICES = 60
_LOOPS_PER_SLICE = 100


def probe_seconds() -> float:
    """Seconds of a fixed computation, about 3 ms on a current core, repeated for about 0.2 s.

    The lower quartile is returned: it ignores short bursts of other work and shows a lasting load. The data fit in
    the first-level cache and nothing is allocated, so that only the processor's speed is measured.
    """
    data = np.linspace(0.1, 1.0, 4096)
    result = np.empty_like(data)
    times = np.empty(_SLICES)
    for index in range(_SLICES):
        start = time.perf_counter()
        for _ in range(_LOOPS_PER_SLICE):
            np.sin(data, out=result)
            np.multiply(data, result, out=result)
            np.sqrt(result, out=result)
        times[index] = time.perf_counter() - start
    return float(np.quantile(times, 0.25))
