"""TensorFlow: a stack per granularity, a loop and a compiler per execution, composed into functions over variables."""

from .builds import builds
from .executions import EXECUTIONS
from .limit import rates
from .network import Network
from .profiling import profiler
from .program import TensorFlowProgram
from .settings import apply_settings, describe_device
from .stacks import make_stack

__all__ = ["build", "builds", "describe", "profiler", "rates"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    execution = EXECUTIONS[job["execution"]]
    network = Network(job, make_stack(job, execution.loop), execution.native_ctc)
    return TensorFlowProgram(job, network, execution.compiled, parameters)
