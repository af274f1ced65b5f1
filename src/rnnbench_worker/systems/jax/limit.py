"""JAX's fastest product and copy, for the machine's limit."""

import jax
import jax.numpy as jnp

from .precision import product_for


def rates(job):
    precision = jnp.bfloat16 if job["precision"] == "bf16" else jnp.float32  # TF32 is a setting of the process
    multiply = jax.jit(product_for(job["precision"]))
    # The old array's memory becomes the new one's: a fresh one each time would measure the allocator.
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
