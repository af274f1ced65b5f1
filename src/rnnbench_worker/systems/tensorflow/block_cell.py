"""The LSTMBlockCell kernel with its gradient's kernel: TensorFlow 2 has both, but no longer registers the second
as the gradient of the first.
"""

from collections import namedtuple

import tensorflow as tf

from .compat import VERSION

#: The kernel's outputs in their order; `ci` and `co` are what the others call g and tanh(c).
Made = namedtuple("Made", "i cs f o ci co h")


def run(x, h, c, w, b, none):
    return tf.raw_ops.LSTMBlockCell(
        x=x, cs_prev=c, h_prev=h, w=w, b=b, forget_bias=0.0, cell_clip=-1.0, use_peephole=False, **none
    )


def gradients(x, h, c, w, b, none, made, h_gradient, c_gradient):
    """By x, h, c, w and b."""
    by_c, by_gates, _, _, _ = tf.raw_ops.LSTMBlockCellGrad(
        x=x, cs_prev=c, h_prev=h, w=w, b=b, i=made.i, cs=made.cs, f=made.f, o=made.o, ci=made.ci, co=made.co,
        cs_grad=c_gradient, h_grad=h_gradient, use_peephole=False, **none
    )  # fmt: skip
    by_x, by_h = tf.split(tf.matmul(by_gates, w, transpose_b=True), [x.shape[1], h.shape[1]], axis=1)
    by_w = tf.matmul(tf.concat([x, h], axis=1), by_gates, transpose_a=True)
    return by_x, by_h, by_c, by_w, tf.reduce_sum(by_gates, axis=0)


def no_peepholes(b):
    zeros = tf.zeros_like(b[: b.shape[0] // 4])
    return {"wci": zeros, "wcf": zeros, "wco": zeros}


@tf.custom_gradient
def customised(x, h, c, w, b):
    none = no_peepholes(b)
    made = run(x, h, c, w, b, none)

    def gradient(h_gradient, c_gradient):
        return gradients(x, h, c, w, b, none, made, h_gradient, c_gradient)

    return (made.h, made.cs), gradient


def registered(x, h, c, w, b):
    made = run(x, h, c, w, b, no_peepholes(b))
    return made.h, made.cs


def registered_gradient(op, *by_outputs):
    x, c, h, w, wci, wcf, wco, b = op.inputs
    none = {"wci": wci, "wcf": wcf, "wco": wco}
    by = Made(*by_outputs)
    by_x, by_h, by_c, by_w, by_b = gradients(x, h, c, w, b, none, Made(*op.outputs), by.h, by.cs)
    return by_x, by_c, by_h, by_w, None, None, None, by_b


if VERSION >= (2, 1):
    block_cell = customised
else:
    # Inside tf.while_loop, 2.0 cannot differentiate what tf.custom_gradient has made.
    tf.RegisterGradient("LSTMBlockCell")(registered_gradient)
    block_cell = registered
