"""JAX: pure functions over a tree of parameters; a stack and an execution make a program of them."""

from .builds import builds
from .cells import GRANULARITIES
from .cudnn import CudnnStack
from .elman import ElmanStep
from .executions import EXECUTIONS
from .graph import graphs
from .limit import rates
from .network import Network
from .precision import product_for
from .profiling import profiler
from .program import JaxProgram
from .settings import apply_settings, describe_device
from .stacks import LoopStack
from .story import story

__all__ = ["build", "builds", "describe", "graphs", "profiler", "rates", "story"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    if job["workload"]["loss"] == "sum":
        return JaxProgram(job, ElmanStep(), EXECUTIONS[job["execution"]].compiled, parameters)
    if job["granularity"] == "stack":
        return build_with(job, CudnnStack(job["workload"]), parameters)
    cell = GRANULARITIES[job["granularity"]](product_for(job["precision"]))
    return build_with(job, LoopStack(job["workload"], cell, EXECUTIONS[job["execution"]].loop), parameters)


def build_with(job, stack, parameters):
    """Any stack in JAX's network and program, its own or another library's."""
    network = Network(job["workload"], stack, product_for(job["precision"]))
    return JaxProgram(job, network, EXECUTIONS[job["execution"]].compiled, parameters)
