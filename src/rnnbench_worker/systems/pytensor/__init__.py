"""PyTensor, Theano's living successor: one symbolic graph, compiled by one of three backends."""

import os
from collections import namedtuple

import numba
import pytensor
import threadpoolctl

from rnnbench_worker.program import built_once as builds
from rnnbench_worker.shared.theano import flush_denormals, function_graph, watch_function
from rnnbench_worker.systems.jax import settings as jax_settings
from rnnbench_worker.systems.jax.inspection import profiler as jax_profiler

from .program import JaxBackedProgram, PyTensorProgram

__all__ = ["build", "builds", "describe", "graphs", "profiler", "prove"]

Backend = namedtuple("Backend", "mode program describe")


def describe(job):
    # The type of numbers in the program text and of arrays that it makes: the default is float64.
    pytensor.config.floatX = "float32"
    description = BACKENDS[job["execution"]].describe(job)
    description["versions"]["pytensor"] = pytensor.__version__
    return description


def describe_jax(job):
    jax_settings.apply_settings(job)
    return jax_settings.describe_device(job)


def describe_c(job):
    return describe_cpu(job, pytensor.config.blas__ldflags or "BLAS of NumPy", {})


def describe_numba(job):
    return describe_cpu(job, "BLAS of SciPy", {"numba": numba.__version__})


def describe_cpu(job, blas, versions):
    """In a step only the matrix products use several threads, and BLAS runs them."""
    if job["flush_denormals"]:
        flush_denormals()
    # Libraries that are loaded later read these variables; those that are loaded already are set directly.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(job["threads"])
    threadpoolctl.threadpool_limits(job["threads"], user_api="blas")
    pools = threadpoolctl.ThreadpoolController().select(user_api="blas").info()
    return {
        "versions": versions,
        "device": "cpu",
        "device_name": blas,
        "threads": max(pool["num_threads"] for pool in pools),
    }


BACKENDS = {
    "scan-jax": Backend("JAX", JaxBackedProgram, describe_jax),
    "scan-c": Backend("CVM", PyTensorProgram, describe_c),
    "scan-numba": Backend("NUMBA", PyTensorProgram, describe_numba),
}


def build(job, parameters):
    backend = BACKENDS[job["execution"]]
    return backend.program(job, backend.mode, parameters)


def prove(job, ability, arrays):
    from .abilities import prove

    return prove(job, ability, arrays, BACKENDS[job["execution"]].mode)


def graphs(job, make):
    """The symbolic graph after PyTensor's rewrites, with the inner graphs of its scans."""
    program, fed = make()
    program.call_of(job["phase"])(fed)
    return [function_graph("PyTensor graph", program.function)]


def profiler(job):
    """PyTensor's own profile where it runs a graph operator by operator; through JAX, JAX's profiler."""
    if job["execution"] == "scan-jax":
        return jax_profiler(job)
    if job["execution"] == "scan-numba":
        return "Numba makes one function of the whole graph, and PyTensor's profile does not look into it"
    # Before anything is compiled: without it functions keep no times.
    pytensor.config.profile = True
    return watch


def watch(program, block, folder):
    return watch_function(program.function, block)
