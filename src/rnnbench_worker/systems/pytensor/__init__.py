"""PyTensor, Theano's living successor: one graph of symbols, compiled by any of three backends."""

from collections import namedtuple

import pytensor

from rnnbench_worker.program import built_once as builds

from .graph import graphs
from .profiling import profiler
from .program import PyTensorProgram
from .settings import apply_settings, describe_c, describe_jax, describe_numba
from .through_jax import JaxBackedProgram

__all__ = ["build", "builds", "describe", "graphs", "profiler"]

Backend = namedtuple("Backend", "mode program describe")

BACKENDS = {
    "scan-jax": Backend("JAX", JaxBackedProgram, describe_jax),
    "scan-c": Backend("CVM", PyTensorProgram, describe_c),
    "scan-numba": Backend("NUMBA", PyTensorProgram, describe_numba),
}


def describe(job):
    apply_settings()
    hello = BACKENDS[job["execution"]].describe(job)
    hello["versions"]["pytensor"] = pytensor.__version__
    return hello


def build(job, parameters):
    backend = BACKENDS[job["execution"]]
    return backend.program(job, backend.mode, parameters)
