"""Equinox: its LSTM cell in JAX's loop, network and program."""

import equinox

from rnnbench_worker.systems import jax as base
from rnnbench_worker.systems.jax import graphs
from rnnbench_worker.systems.jax.builds import builds
from rnnbench_worker.systems.jax.executions import EXECUTIONS
from rnnbench_worker.systems.jax.profiling import profiler
from rnnbench_worker.systems.jax.stacks import LoopStack

from .cell import EquinoxCell

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    hello = base.describe(job)
    hello["versions"]["equinox"] = equinox.__version__
    return hello


def build(job, parameters):
    stack = LoopStack(job["workload"], EquinoxCell(job["precision"]), EXECUTIONS[job["execution"]].loop)
    return base.build_with(job, stack, parameters)
