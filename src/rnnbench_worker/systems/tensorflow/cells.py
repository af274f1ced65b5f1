"""The cells: one time step each, at three granularities, all called as `h, c = cell(weights, x, h, c)`.

A cell holds no weights; they are passed at every call. It knows its own layout of the canonical w, u and b:
`from_canonical` returns its weights, `to_canonical` the canonical arrays.
"""

from collections import namedtuple

import numpy as np
import tensorflow as tf

from rnnbench_worker.canonical import from_gate_order, join_gates, split_gates, to_gate_order

from .settings import VERSION

#: The order of gates in the kernels of TensorFlow's contributed cells ("icfo" in their sources).
KERNEL_ORDER = "igfo"


def advance(i, f, g, o, c):
    """The new state (h, c), from the gates before their nonlinearities."""
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(c), c


class FineCell(object):
    """One weight per gate: eight products per step, every operator a primitive."""

    states = 2

    def __init__(self, product):
        self._product = product

    def __call__(self, weights, x, h, c):
        product = self._product
        gates = [product(x, w) + product(h, u) + b for w, u, b in zip(weights[:4], weights[4:8], weights[8:])]
        return advance(*(gates + [c]))

    @staticmethod
    def from_canonical(w, u, b):
        return split_gates(w) + split_gates(u) + split_gates(b)

    @staticmethod
    def to_canonical(arrays):
        return [join_gates(arrays[start : start + 4]) for start in (0, 4, 8)]


class PackedCell(object):
    """The four gates in one matrix: two products per step, every operator a primitive."""

    states = 2

    def __init__(self, product):
        self._product = product

    def __call__(self, weights, x, h, c):
        w, u, b = weights
        i, f, g, o = tf.split(self._product(x, w) + self._product(h, u) + b, 4, axis=1)
        return advance(i, f, g, o, c)

    @staticmethod
    def from_canonical(w, u, b):
        return [w, u, b]

    @staticmethod
    def to_canonical(arrays):
        return arrays


class BlockCell(object):
    """The LSTMBlockCell kernel: one operator per step."""

    states = 2

    def __init__(self, product):
        self._product = product

    def __call__(self, weights, x, h, c):
        # As tensors, because a custom gradient treats variables differently.
        w, b = [tf.convert_to_tensor(weight) for weight in weights]
        return block_cell(x, h, c, w, b)

    @staticmethod
    def from_canonical(w, u, b):
        return stack_weights(w, u, b)

    @staticmethod
    def to_canonical(arrays):
        return unstack_weights(arrays)


def stack_weights(w, u, b):
    """Input and recurrent weights in one matrix [in+H,4H], in the order of the kernels."""
    stacked = np.concatenate([to_gate_order(w, KERNEL_ORDER), to_gate_order(u, KERNEL_ORDER)], axis=0)
    return [stacked, to_gate_order(b, KERNEL_ORDER)]


def unstack_weights(arrays):
    """The inverse of `stack_weights`."""
    stacked, b = arrays
    width = stacked.shape[0] - stacked.shape[1] // 4
    return [from_gate_order(array, KERNEL_ORDER) for array in (stacked[:width], stacked[width:], b)]


CELLS = {"fine": FineCell, "packed": PackedCell, "cell": BlockCell}


# --- the LSTMBlockCell kernel -------------------------------------------------------------------------
# TensorFlow 2 still has this kernel and the kernel of its gradient, but no longer registers the second as the gradient
# of the first.

#: The kernel's outputs in their order; `ci` and `co` are what others call g and tanh(c).
KernelOutputs = namedtuple("KernelOutputs", "i cs f o ci co h")


def run_kernel(x, h, c, w, b, peepholes):
    return tf.raw_ops.LSTMBlockCell(
        x=x, cs_prev=c, h_prev=h, w=w, b=b, forget_bias=0.0, cell_clip=-1.0, use_peephole=False, **peepholes
    )


def kernel_gradients(x, h, c, w, b, peepholes, outputs, h_gradient, c_gradient):
    """The gradients of x, h, c, w and b."""
    by_c, by_gates, _, _, _ = tf.raw_ops.LSTMBlockCellGrad(
        x=x, cs_prev=c, h_prev=h, w=w, b=b,
        i=outputs.i, cs=outputs.cs, f=outputs.f, o=outputs.o, ci=outputs.ci, co=outputs.co,
        cs_grad=c_gradient, h_grad=h_gradient, use_peephole=False, **peepholes
    )  # fmt: skip
    by_x, by_h = tf.split(tf.matmul(by_gates, w, transpose_b=True), [x.shape[1], h.shape[1]], axis=1)
    by_w = tf.matmul(tf.concat([x, h], axis=1), by_gates, transpose_a=True)
    return by_x, by_h, by_c, by_w, tf.reduce_sum(by_gates, axis=0)


def zero_peepholes(b):
    zeros = tf.zeros_like(b[: b.shape[0] // 4])
    return {"wci": zeros, "wcf": zeros, "wco": zeros}


@tf.custom_gradient
def with_custom_gradient(x, h, c, w, b):
    peepholes = zero_peepholes(b)
    outputs = run_kernel(x, h, c, w, b, peepholes)

    def gradient(h_gradient, c_gradient):
        return kernel_gradients(x, h, c, w, b, peepholes, outputs, h_gradient, c_gradient)

    return (outputs.h, outputs.cs), gradient


def with_registered_gradient(x, h, c, w, b):
    outputs = run_kernel(x, h, c, w, b, zero_peepholes(b))
    return outputs.h, outputs.cs


def registered_gradient(op, *by_outputs):
    x, c, h, w, wci, wcf, wco, b = op.inputs
    peepholes = {"wci": wci, "wcf": wcf, "wco": wco}
    by = KernelOutputs(*by_outputs)
    by_x, by_h, by_c, by_w, by_b = kernel_gradients(x, h, c, w, b, peepholes, KernelOutputs(*op.outputs), by.h, by.cs)
    return by_x, by_c, by_h, by_w, None, None, None, by_b


if VERSION >= (2, 1):
    block_cell = with_custom_gradient
else:
    # Inside tf.while_loop, 2.0 cannot differentiate a function with tf.custom_gradient.
    tf.RegisterGradient("LSTMBlockCell")(registered_gradient)
    block_cell = with_registered_gradient
