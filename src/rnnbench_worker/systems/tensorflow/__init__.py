"""TensorFlow: a stack for each granularity, a loop and a compiler for each execution, composed into functions."""

from .inspection import graphs, profiler
from .network import Network, make_stack
from .program import EXECUTIONS, TensorFlowProgram, builds
from .settings import apply_settings, describe_device, rates
from .story import ElmanStep, story

__all__ = ["build", "builds", "describe", "graphs", "profiler", "prove", "rates", "story"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    execution = EXECUTIONS[job["execution"]]
    if job["workload"]["loss"] == "sum":
        return TensorFlowProgram(job, ElmanStep(), execution.compiled, parameters)
    network = Network(job, make_stack(job, execution.loop), execution.native_ctc)
    return TensorFlowProgram(job, network, execution.compiled, parameters)


def prove(job, ability, arrays):
    from .abilities import prove  # no row that is timed pays for it

    return prove(job, ability, arrays)
