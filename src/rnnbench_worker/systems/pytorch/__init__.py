"""PyTorch: a stack per granularity, an execution wrapped round any of them."""

from .builds import builds
from .cudagraph import GraphProgram
from .elman import build_step
from .executions import EXECUTIONS, direction_for
from .graph import graphs
from .limit import rates
from .network import Network, assign
from .profiling import profiler
from .program import TorchProgram
from .settings import apply_settings, describe_device
from .stacks import LoopStack, VendorStack
from .story import story

__all__ = ["build", "builds", "describe", "graphs", "profiler", "rates", "story"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    workload, execution = job["workload"], job["execution"]
    if workload["loss"] == "sum":
        return build_step(job, parameters, EXECUTIONS[execution])
    if job["granularity"] == "stack":
        stack = VendorStack(workload)
    else:
        stack = LoopStack(workload, job["granularity"], direction_for(execution))
    network = Network(workload, stack)
    assign(network, workload, parameters)
    if execution == "cudagraph":
        return GraphProgram(job, network, EXECUTIONS["eager"])
    return TorchProgram(job, network, EXECUTIONS[execution])
