"""JAX: pure functions over a tree of parameters; a stack and an execution make a program of them."""

from .cells import GRANULARITIES
from .executions import EXECUTIONS
from .network import Network
from .precision import product_for
from .program import JaxProgram
from .settings import apply_settings, describe_device
from .stacks import LoopStack


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    execution, product = EXECUTIONS[job["execution"]], product_for(job["precision"])
    stack = LoopStack(job["workload"], GRANULARITIES[job["granularity"]](product), execution.loop)
    return JaxProgram(job, Network(job["workload"], stack, product), execution.compiled, parameters)
