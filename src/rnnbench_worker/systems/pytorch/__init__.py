"""PyTorch: a stack per granularity, an execution wrapped round any of them."""

from .builds import builds
from .cudagraph import GraphProgram
from .executions import EXECUTIONS, direction_for
from .limit import rates
from .network import Network, assign
from .profiling import profiler
from .program import TorchProgram
from .settings import apply_settings, describe_device
from .stacks import LoopStack, VendorStack

__all__ = ["build", "builds", "describe", "profiler", "rates"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    workload, execution = job["workload"], job["execution"]
    if job["granularity"] == "stack":
        stack = VendorStack(workload)
    else:
        stack = LoopStack(workload, job["granularity"], direction_for(execution))
    network = Network(workload, stack)
    assign(network, workload, parameters)
    if execution == "cudagraph":
        return GraphProgram(job, network, EXECUTIONS["eager"])
    return TorchProgram(job, network, EXECUTIONS[execution])
