"""PyTensor's own profile of a function, where it runs a graph operator by operator; through JAX, JAX's profiler."""

import pytensor

from rnnbench_worker.systems.jax.profiling import profiler as jax_profiler
from rnnbench_worker.systems.theano.functions import watch_function


def profiler(job):
    if job["execution"] == "scan-jax":
        return jax_profiler(job)
    if job["execution"] == "scan-numba":
        return "Numba makes one function of the whole graph, and PyTensor's profile does not look into it"
    # Before anything is compiled: functions without it keep no times.
    pytensor.config.profile = True
    return watch


def watch(program, block, folder):
    return watch_function(program.function, block)
