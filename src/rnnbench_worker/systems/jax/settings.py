"""What is set once per process: platform, threads, precision; and what JAX says it then has.

Denormals need no setting: XLA's thread pool on the CPU flushes them by itself.
"""

import os

import jax
import jaxlib
import optax

from .precision import DEFAULTS


def apply_settings(job):
    """Before any array is made: XLA looks at these when its first device is asked for."""
    jax.config.update("jax_platforms", job["device"])
    # The pool has as many threads as the process has processors, unless this variable says otherwise.
    os.environ["NPROC"] = str(job["threads"])
    jax.config.update("jax_default_matmul_precision", DEFAULTS[job["precision"]])


def describe_device(job):
    try:
        device = jax.devices()[0]
    except RuntimeError as error:
        raise RuntimeError("JAX {} has no device '{}': {}".format(jax.__version__, job["device"], error))
    versions = {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "optax": optax.__version__}
    if device.platform == "gpu":
        versions["cuda"] = device.client.platform_version.split()[-1]
    return {
        "versions": versions,
        "device": device_name(device),
        "device_name": device.device_kind,
        # XLA does not tell the size of its pool; where the process is pinned, its processors are the limit.
        "threads": len(os.sched_getaffinity(0)) if job["cpus"] else None,
    }


def device_name(device):
    """A JAX device in the job's words."""
    return "cuda" if device.platform == "gpu" else device.platform
