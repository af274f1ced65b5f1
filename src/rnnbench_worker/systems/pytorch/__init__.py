"""PyTorch: a stack for each granularity, and an execution wrapped around any of them."""

from .executions import EXECUTIONS, CudaGraphProgram, builds, stack_for
from .inspection import graphs, profiler
from .network import Network, assign
from .own_cell import inspect_cell
from .own_loop import FusedOwnStack, OwnStack
from .program import TorchProgram
from .settings import apply_settings, describe_device, rates
from .stacks import VendorStack
from .story import build_step, story

__all__ = ["build", "builds", "describe", "graphs", "inspect_cell", "profiler", "prove", "rates", "story"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    workload, execution = job["workload"], job["execution"]
    if workload["loss"] == "sum":
        return build_step(job, parameters, EXECUTIONS[execution])
    if job["granularity"] == "stack":
        stack = VendorStack(workload)
    elif workload["own"] and workload["own"]["class_name"]:
        stack = (FusedOwnStack if execution.startswith("rnnfuse") else OwnStack)(workload, job["precision"] == "fp64")
    else:
        stack = stack_for(workload, job["granularity"], execution)
    network = Network(workload, stack)
    assign(network, workload, parameters)
    if execution.endswith("cudagraph"):
        return CudaGraphProgram(job, network, EXECUTIONS["eager"])
    return TorchProgram(job, network, EXECUTIONS[execution])


def prove(job, ability, arrays):
    from .abilities import prove  # no row that is timed pays for it

    return prove(job, ability, arrays)
