"""What is set before Theano is imported: its BLAS, denormals; and what it then has.

NumPy's wheels bring an OpenBLAS. Theano is linked with that very library: nothing has to be installed beside
the environment, and both share one pool of threads.
"""

import ctypes
import glob
import os

import numpy as np

from rnnbench_worker.denormals import flush_denormals


def describe_device(job):
    blas = blas_of_numpy()
    if blas is not None:
        folder, name = os.path.split(blas)
        flags = "blas.ldflags=-L{} -l:{}".format(folder, name)
        os.environ["THEANO_FLAGS"] = ",".join(filter(None, [os.environ.get("THEANO_FLAGS"), flags]))
    import theano

    if job["flush_denormals"]:
        flush_denormals()
    threads = None
    if blas is not None:
        # Of a step only the products are shared out among threads, and BLAS does that.
        library = ctypes.CDLL(blas)
        library.openblas_set_num_threads(job["threads"])
        threads = library.openblas_get_num_threads()
    return {
        "versions": {"theano": theano.__version__},
        "device": "cuda" if theano.config.device.startswith(("cuda", "gpu")) else "cpu",
        "device_name": os.path.basename(blas) if blas else theano.config.blas.ldflags or "BLAS of NumPy",
        "threads": threads,
    }


def blas_of_numpy():
    """The OpenBLAS of NumPy's wheel; None where NumPy was built with another."""
    found = glob.glob(os.path.join(os.path.dirname(np.__file__), ".libs", "libopenblas*.so"))
    return found[0] if found else None
