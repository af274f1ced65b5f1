"""The machine's limit as a framework's own operators reach it: the best rates of matrix products and copies.

The fastest block of each size counts, because other load on the machine does not lower what it can do.
"""

import time

from .loading import told

#: Widths of the square matrices. A size is tried only if the one before predicts that it will not take too long.
SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)
#: Bytes of the array that is copied. Where it fits into a cache, the cache's rate is the machine's.
COPIES = (2**23, 2**26, 2**28)
LONGEST = 0.25  # seconds that one product may take
BLOCKS = 3  # at the least
BLOCK_SECONDS = 0.03
SIZE_SECONDS = 0.15
FLOAT_BYTES = 4


def measure_limit(job, framework, channel):
    """Sends nothing where the framework's folder offers no `rates`, or none for this job."""
    rates = framework.rates(told(job)) if hasattr(framework, "rates") else None
    if rates is None:
        return
    products, expected = [], 0.0
    for size in SIZES:
        if expected > LONGEST:
            break
        seconds = fastest(rates["product"](size), rates["sync"])
        products.append([2 * size**3, seconds])
        expected = 8 * seconds
    copies = []
    for amount in COPIES:
        seconds = fastest(rates["copy"](amount // FLOAT_BYTES), rates["sync"])
        copies.append([2 * amount, seconds])
    channel.send("rates", products=products, copies=copies)


def fastest(call, sync):
    """Seconds per call in the fastest of a few blocks, each of which waits only at its end."""
    block(call, sync, 1)  # compiles what is to be compiled
    best = block(call, sync, 1)
    calls = max(1, int(BLOCK_SECONDS / max(best, 1e-9)))
    spent, blocks = 0.0, 0
    while spent < SIZE_SECONDS or blocks < BLOCKS:
        took = block(call, sync, calls)
        best = min(best, took / calls)
        spent, blocks = spent + took, blocks + 1
    return best


def block(call, sync, calls):
    """Seconds of this many calls and the wait after the last one."""
    handle = None
    start = time.perf_counter()
    for _ in range(calls):
        handle = call()
    sync(handle)
    return time.perf_counter() - start
