"""Any cell of rnnbench_cells in TensorFlow: its file's step over TensorFlow's operators."""

import tensorflow as tf

import rnnbench_cells


class AnyCell(object):
    """Called as the other cells. Its weights are canonical, in the order of its file."""

    def __init__(self, name, product):
        self._cell = rnnbench_cells.find(name)
        self._names = list(self._cell.parameters(1, 1))
        self._operators = Operators(product)
        self.states = len(self._cell.STATES)

    def __call__(self, weights, x, *state):
        named = dict(zip(self._names, weights))
        new = self._cell.step(self._operators, named, x, dict(zip(self._cell.STATES, state)))
        return tuple(new[name] for name in self._cell.STATES)

    @staticmethod
    def from_canonical(*weights):
        return list(weights)

    @staticmethod
    def to_canonical(arrays):
        return arrays


class Operators(object):
    """The vocabulary of rnnbench_cells."""

    def __init__(self, product):
        self.matmul = product
        self.sigmoid, self.tanh, self.relu, self.softplus = tf.sigmoid, tf.tanh, tf.nn.relu, tf.math.softplus
        self.exp, self.log, self.maximum, self.minimum = tf.exp, tf.math.log, tf.maximum, tf.minimum
        self.constant = tf.stop_gradient

    @staticmethod
    def split(a, count):
        return tf.split(a, count, axis=-1)

    @staticmethod
    def concat(pieces):
        return tf.concat(pieces, axis=-1)

    @staticmethod
    def layer_norm(a, gain, bias):
        mean, variance = tf.nn.moments(a, axes=[-1], keepdims=True)
        return (a - mean) * tf.math.rsqrt(variance + rnnbench_cells.EPSILON) * gain + bias
