"""The cells: one time step each, at three granularities, all called as `h, c = cell(weights, x, h, c)`.

Each knows how its weights lie beside the canonical w, u, b: `own` takes canonical arrays apart,
`canonical` puts them together again. Weights are given at every call: a cell itself holds nothing.
"""

import numpy as np
import tensorflow as tf

from rnnbench_worker.canonical import from_order, join_gates, split_gates, to_order

from .block_cell import block_cell

#: The order of gates in the kernels of TensorFlow's contributed cells ("icfo" in their sources).
KERNEL_ORDER = "igfo"


def advance(i, f, g, o, c):
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(c), c


class FineCell(object):
    """One weight per gate: eight products a step, every operator a primitive."""

    def __init__(self, product):
        self._product = product

    def __call__(self, weights, x, h, c):
        product = self._product
        gates = [product(x, w) + product(h, u) + b for w, u, b in zip(weights[:4], weights[4:8], weights[8:])]
        return advance(*(gates + [c]))

    @staticmethod
    def own(w, u, b):
        return split_gates(w) + split_gates(u) + split_gates(b)

    @staticmethod
    def canonical(arrays):
        return [join_gates(arrays[start : start + 4]) for start in (0, 4, 8)]


class PackedCell(object):
    """The four gates in one matrix: two products a step, every operator a primitive."""

    def __init__(self, product):
        self._product = product

    def __call__(self, weights, x, h, c):
        w, u, b = weights
        i, f, g, o = tf.split(self._product(x, w) + self._product(h, u) + b, 4, axis=1)
        return advance(i, f, g, o, c)

    @staticmethod
    def own(w, u, b):
        return [w, u, b]

    @staticmethod
    def canonical(arrays):
        return arrays


class BlockCell(object):
    """The LSTMBlockCell kernel: one operator a step. Only the gradient's kernel is left of its gradient."""

    def __init__(self, product):
        self._product = product

    def __call__(self, weights, x, h, c):
        # As tensors: a variable inside a custom gradient would need a way of its own.
        w, b = [tf.convert_to_tensor(weight) for weight in weights]
        return block_cell(x, h, c, w, b)

    @staticmethod
    def own(w, u, b):
        return own_stacked(w, u, b)

    @staticmethod
    def canonical(arrays):
        return canonical_stacked(arrays)


def own_stacked(w, u, b):
    """Input and recurrent weights in one matrix [in+H,4H], as the kernels want them."""
    stacked = np.concatenate([to_order(w, KERNEL_ORDER), to_order(u, KERNEL_ORDER)], axis=0)
    return [stacked, to_order(b, KERNEL_ORDER)]


def canonical_stacked(arrays):
    stacked, b = arrays
    width = stacked.shape[0] - stacked.shape[1] // 4
    return [from_order(array, KERNEL_ORDER) for array in (stacked[:width], stacked[width:], b)]


CELLS = {"fine": FineCell, "packed": PackedCell, "cell": BlockCell}
