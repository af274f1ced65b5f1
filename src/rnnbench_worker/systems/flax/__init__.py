"""Flax: its recurrent modules in JAX's network and program."""

import flax

from rnnbench_worker.systems import jax as base
from rnnbench_worker.systems.jax import graphs
from rnnbench_worker.systems.jax.builds import builds
from rnnbench_worker.systems.jax.profiling import profiler

from .stack import FlaxStack

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    hello = base.describe(job)
    hello["versions"]["flax"] = flax.__version__
    return hello


def build(job, parameters):
    return base.build_with(job, FlaxStack(job["workload"], job["precision"]), parameters)
