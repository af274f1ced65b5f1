"""What is set once per process: float type, threads, denormals; and what PyTensor and what it calls then have."""

import os

import numba
import pytensor
import threadpoolctl

from rnnbench_worker.denormals import flush_denormals
from rnnbench_worker.systems.jax import settings as jax_settings


def apply_settings():
    # Of numbers in the program text, and of arrays made by it: the default is float64.
    pytensor.config.floatX = "float32"


def describe_jax(job):
    jax_settings.apply_settings(job)
    return jax_settings.describe_device(job)


def describe_c(job):
    return describe_cpu(job, pytensor.config.blas__ldflags or "BLAS of NumPy", {})


def describe_numba(job):
    return describe_cpu(job, "BLAS of SciPy", {"numba": numba.__version__})


def describe_cpu(job, blas, versions):
    """Of a step only the products are shared out among threads, and BLAS does that."""
    if job["flush_denormals"]:
        flush_denormals()
    # A library that is loaded later reads these; those that are there already have to be told.
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
