"""JAX's platform, threads and precision: what is set once per process, what JAX then reports, how fast it is.

Denormals need no setting: XLA's thread pool on the CPU flushes them to zero itself.
"""

import inspect
import os

import jax
import jax.numpy as jnp
import jaxlib
import optax

#: The precision of products that name none, for the whole process. On a GPU JAX's own default is TF32, so that fp32
#: would not be fp32. For bf16 it does not matter, because those products are between numbers that are bf16 already.
DEFAULT_PRECISIONS = {"fp32": "highest", "tf32": "tensorfloat32", "bf16": "default"}


def apply_settings(job):
    """To be called before any array is made: XLA reads these settings when the first device is used."""
    jax.config.update("jax_platforms", job["device"])
    if job["device"] == "cpu":
        # The pool has as many threads as the process has processors, unless this variable says otherwise. With a GPU
        # it only compiles, which takes two minutes on two threads where XLA tries many kernels for each product.
        os.environ["NPROC"] = str(job["threads"])
    jax.config.update("jax_default_matmul_precision", DEFAULT_PRECISIONS[job["precision"]])


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
        # XLA does not report the size of its pool; where the process is pinned, its processors are the limit.
        # On a GPU the pool computes nothing, and the process may use more processors than it is timed on.
        "threads": len(os.sched_getaffinity(0)) if job["cpus"] and job["device"] == "cpu" else None,
    }


def device_name(device):
    """A JAX device as a job names it."""
    return "cuda" if device.platform == "gpu" else device.platform


def peak_bytes(device):
    """The most memory used on the device, or None."""
    statistics = device.memory_stats()  # None on a CPU
    return statistics.get("peak_bytes_in_use") if statistics else None


def product_for(precision):
    """The product of activations and weights: fp32 and tf32 are settings of the process, bf16 is cast here."""
    return bf16_product if precision == "bf16" else jnp.matmul


def bf16_product(x, w):
    """Both operands are cast at every time step, not once before the loop.

    So the gradient of a weight is summed over the steps in fp32. In bf16 a sum of a thousand small terms would stop
    growing.
    """
    return jnp.matmul(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16))


def rates(job):
    """JAX's fastest product and copy, for the machine's limit."""
    precision = jnp.bfloat16 if job["precision"] == "bf16" else jnp.float32  # TF32 is a setting of the process
    # XLA would measure many algorithms of each size, for two minutes in all; the one it begins with is as fast.
    untuned = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
    has_options = job["device"] == "cuda" and "compiler_options" in inspect.signature(jax.jit).parameters
    multiply = jax.jit(product_for(job["precision"]), **({"compiler_options": untuned} if has_options else {}))
    # The result reuses the argument's memory: allocating a new array each time would measure the allocator.
    negate = jax.jit(jnp.negative, donate_argnums=0)

    def product(size):
        left, right = jax.random.uniform(jax.random.key(0), (2, size, size)).astype(precision)
        return lambda: multiply(left, right)

    def copy(count):
        arrays = [jnp.ones(count, jnp.float32)]

        def call():
            arrays[0] = negate(arrays[0])
            return arrays[0]

        return call

    return {"product": product, "copy": copy, "sync": jax.block_until_ready}
