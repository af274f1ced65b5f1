"""JAX: pure functions over a dict of parameters; a granularity and an execution make a program of them."""

from .cells import GRANULARITIES
from .executions import EXECUTIONS
from .limit import rates
from .network import Network
from .precision import product_for
from .program import JaxProgram
from .settings import apply_settings, describe_device

__all__ = ["build", "describe", "rates"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    granularity, execution = GRANULARITIES[job["granularity"]], EXECUTIONS[job["execution"]]
    network = Network(job["workload"], granularity.gates, execution.loop, product_for(job["precision"]))
    return JaxProgram(job, network, granularity, execution.compiled, parameters)
