"""The product of activations and weights, in the job's precision."""

import jax.numpy as jnp

#: Of products that do not say, for the whole process. On a GPU the default is TF32: fp32 would not be fp32.
#: Beside bf16 it does not matter: its products are between numbers that are bf16 already.
DEFAULTS = {"fp32": "highest", "tf32": "tensorfloat32", "bf16": "default"}


def product_for(precision):
    """fp32 and tf32 are settings of the whole process; bf16 is mixed by hand."""
    return bf16_product if precision == "bf16" else jnp.matmul


def bf16_product(x, w):
    """Both cast here, at every step, and not once before the loop.

    So the weight's gradient is added up over the steps in fp32: in bf16 the sum of a thousand small
    terms would stand still.
    """
    return jnp.matmul(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16))
