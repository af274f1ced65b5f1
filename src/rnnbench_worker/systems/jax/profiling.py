"""JAX under jax.profiler, which leaves a Chrome trace."""

import gzip
import json

import jax

from rnnbench_worker.xla_trace import only_file, perfetto_file, timeline


def profiler(job):
    return watch


def watch(program, block, folder):
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # every call of a Python function would be an event
    jax.profiler.start_trace(folder, profiler_options=options)
    try:
        block()
    finally:
        jax.profiler.stop_trace()
    with gzip.open(only_file(folder, ".trace.json.gz"), "rt") as file:
        events = json.load(file)["traceEvents"]
    return timeline(perfetto_file(events, folder))
