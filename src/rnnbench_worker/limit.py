"""The machine's limit as a framework's own operators reach it: matrix products and copies, each at its best.

The fastest block of each size is kept: what a machine can do is not made less by what else it had to do.
"""

import time

#: Edges of the square matrices: each size is tried while the one before says that it will not take too long.
SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)
#: Bytes of the array that is copied. Where it fits a cache, that is what the machine has.
COPIES = (2**23, 2**26, 2**28)
LONGEST = 0.25  # seconds that one product may take
BLOCKS = 3  # at least
BLOCK_SECONDS = 0.03
SIZE_SECONDS = 0.15
FLOAT_BYTES = 4


def measure_limit(job, framework, channel):
    """Sends nothing where the framework's folder offers no `rates`, or none for this job."""
    rates = framework.rates(job) if hasattr(framework, "rates") else None
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
    """Seconds of one call, in the fastest of a few blocks of calls that wait only at their end."""
    block(call, sync, 1)  # compiles, if anything does
    best = block(call, sync, 1)
    calls = max(1, int(BLOCK_SECONDS / max(best, 1e-9)))
    spent, blocks = 0.0, 0
    while spent < SIZE_SECONDS or blocks < BLOCKS:
        took = block(call, sync, calls)
        best = min(best, took / calls)
        spent, blocks = spent + took, blocks + 1
    return best


def block(call, sync, calls):
    handle = None
    start = time.perf_counter()
    for _ in range(calls):
        handle = call()
    sync(handle)
    return time.perf_counter() - start
