"""TensorFlow: a stack per granularity, a loop and a compiler per execution, composed into functions over variables."""

from .builds import builds
from .elman import ElmanStep
from .executions import EXECUTIONS
from .graph import graphs
from .limit import rates
from .network import Network
from .profiling import profiler
from .program import TensorFlowProgram
from .settings import apply_settings, describe_device
from .stacks import make_stack
from .story import story

__all__ = ["build", "builds", "describe", "graphs", "profiler", "rates", "story"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    execution = EXECUTIONS[job["execution"]]
    if job["workload"]["loss"] == "sum":
        return TensorFlowProgram(job, ElmanStep(), execution.compiled, parameters)
    network = Network(job, make_stack(job, execution.loop), execution.native_ctc)
    return TensorFlowProgram(job, network, execution.compiled, parameters)
