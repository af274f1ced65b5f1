"""JAX: pure functions of a tree of parameters; a stack and an execution turn them into a program."""

from .inspection import graphs, profiler
from .network import CudnnStack, LoopStack, Network, cell_for
from .program import EXECUTIONS, JaxProgram, builds
from .settings import apply_settings, describe_device, product_for, rates
from .story import ElmanStep, story

__all__ = ["build", "builds", "describe", "graphs", "profiler", "prove", "rates", "story"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    if job["workload"]["loss"] == "sum":
        return JaxProgram(job, ElmanStep(), EXECUTIONS[job["execution"]].compiled, parameters)
    if job["granularity"] == "stack":
        return build_with(job, CudnnStack(job["workload"]), parameters)
    cell = cell_for(job["workload"], job["granularity"], product_for(job["precision"]))
    return build_with(job, LoopStack(job["workload"], cell, EXECUTIONS[job["execution"]].loop), parameters)


def build_with(job, stack, parameters):
    """A program of JAX's network with any stack, JAX's own or another library's."""
    network = Network(job["workload"], stack, product_for(job["precision"]))
    return JaxProgram(job, network, EXECUTIONS[job["execution"]].compiled, parameters)


def prove(job, ability, arrays):
    from .abilities import prove  # no row that is timed pays for it

    return prove(job, ability, arrays)
