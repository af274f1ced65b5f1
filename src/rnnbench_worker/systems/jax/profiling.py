"""JAX under jax.profiler."""

import jax

from rnnbench_worker.xla_trace import watched


def profiler(job):
    return watch


def watch(program, block, folder):
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # every call of a Python function would be an event
    return watched(
        lambda place: jax.profiler.start_trace(place, profiler_options=options), jax.profiler.stop_trace, block, folder
    )
