"""The product of activations and weights, in the job's precision."""

import tensorflow as tf


def product_for(precision):
    """fp32 and tf32 are settings of the whole process; bf16 is mixed by hand."""
    return bf16_product if precision == "bf16" else tf.matmul


def bf16_product(x, w):
    """Operands in bf16, all else in fp32. Cast at every step, so that gradients add up over the steps in fp32."""
    return tf.cast(tf.matmul(tf.cast(x, tf.bfloat16), tf.cast(w, tf.bfloat16)), tf.float32)
