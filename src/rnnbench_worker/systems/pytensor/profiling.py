"""PyTensor's own profile of a function, where it runs a graph operator by operator; through JAX, JAX's profiler."""

import pytensor
from pytensor.scan.op import Scan

from rnnbench_worker.profile import BATCHES
from rnnbench_worker.systems.jax.profiling import profiler as jax_profiler
from rnnbench_worker.timeline import Timeline, end_to_end


def profiler(job):
    if job["execution"] == "scan-jax":
        return jax_profiler(job)
    if job["execution"] == "scan-numba":
        return "Numba makes one function of the whole graph, and PyTensor's profile does not look into it"
    # Before anything is compiled: functions without it keep no times.
    pytensor.config.profile = True
    return watch


def watch(program, block, folder):
    profile = program._function.profile
    for one in everything_below(program._function):
        one.reset()
    block()
    totals = [
        (type(node.op).__name__, count, stats.apply_time[graph, node])
        for stats in everything_below(program._function)
        for (graph, node), count in stats.apply_callcount.items()
        # What a loop runs is counted by itself: the loop is not an operator beside it.
        if not isinstance(node.op, Scan)
    ]
    assert profile.fct_callcount == BATCHES
    return Timeline(host=end_to_end(totals), device=[], batches=BATCHES, file="")


def everything_below(function):
    """The profiles of a function and of the loops in it."""
    yield function.profile
    for node in function.maker.fgraph.toposort():
        if isinstance(node.op, Scan):
            for profile in everything_below(node.op.fn):
                yield profile
