"""Keras on JAX."""

from rnnbench_worker.systems.jax.builds import builds
from rnnbench_worker.systems.jax.profiling import profiler
from rnnbench_worker.systems.jax.settings import apply_settings, describe_device
from rnnbench_worker.systems.keras import with_version
from rnnbench_worker.systems.keras.on_jax import JaxProgram

from .graph import graphs

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    apply_settings(job)
    return with_version(describe_device(job))


def build(job, parameters):
    return JaxProgram(job, parameters)
