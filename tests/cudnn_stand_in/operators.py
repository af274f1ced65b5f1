"""cuDNN's LSTM in operators that run on a CPU: flat weights, gates i, f, g, o, two biases, sequences of any length.

The flat array is read piece by piece as NVIDIA and TensorFlow lay it out; test_cuda.py holds the real operators to the
same. A pseudo-layer is a layer in one direction, forward before backward.
"""

from collections import namedtuple

import tensorflow as tf

Output = namedtuple("Output", "output")


class StandIn:
    def __init__(self, gates="ifgo", backward_first=False, biases_beside_matrices=False):
        self._gates = gates
        self._backward_first = backward_first
        self._biases_beside_matrices = biases_beside_matrices

    def rnn(self, input, input_h, input_c, params, sequence_lengths, time_major, is_training, **kind):
        assert (kind["rnn_mode"], kind["input_mode"], time_major) == ("lstm", "linear_input", True)
        assert {one.dtype for one in (input, input_h, input_c, params)} == {input.dtype}
        directions = {"unidirectional": 1, "bidirectional": 2}[kind["direction"]]
        layers, units = input_h.shape[0] // directions, input_h.shape[2]
        pseudo_layers = self._read(params, layers, units, input.shape[2], directions)
        xs = input
        for layer in range(layers):
            outputs = []
            for direction in range(directions):
                place = layer * directions + direction
                held = layer * directions + (directions - 1 - direction if self._backward_first else direction)
                state = input_h[place], input_c[place]
                ordered = reverse(xs, sequence_lengths) if direction else xs
                hs = self._layer(*pseudo_layers[held], ordered, state, sequence_lengths)
                outputs.append(reverse(hs, sequence_lengths) if direction else hs)
            xs = tf.concat(outputs, axis=2)
        return Output(xs)

    def _read(self, params, layers, units, width, directions):
        """Eight matrices and eight biases of every pseudo-layer."""
        place = 0

        def take(count, *shape):
            nonlocal place
            taken = []
            for _ in range(count):
                size = tf.TensorShape(shape).num_elements()
                taken.append(tf.reshape(params[place : place + size], shape))
                place += size
            return taken

        widths = [units * directions if layer else width for layer in range(layers) for _ in range(directions)]
        if self._biases_beside_matrices:
            found = [(take(4, units, one) + take(4, units, units), take(8, units)) for one in widths]
        else:
            matrices = [take(4, units, one) + take(4, units, units) for one in widths]
            found = [(eight, take(8, units)) for eight in matrices]
        assert place == params.shape[0]
        return found

    def _layer(self, matrices, biases, xs, state, lengths):
        h, c = state
        outputs = []
        for step, x in enumerate(tf.unstack(xs)):
            gates = {
                name: tf.matmul(x, matrices[k], transpose_b=True)
                + tf.matmul(h, matrices[k + 4], transpose_b=True)
                + biases[k]
                + biases[k + 4]
                for k, name in enumerate(self._gates)
            }
            new_c = tf.sigmoid(gates["f"]) * c + tf.sigmoid(gates["i"]) * tf.tanh(gates["g"])
            new_h = tf.sigmoid(gates["o"]) * tf.tanh(new_c)
            inside = (step < lengths)[:, None]
            h, c = tf.where(inside, new_h, h), tf.where(inside, new_c, c)
            outputs.append(tf.where(inside, new_h, tf.zeros_like(new_h)))
        return tf.stack(outputs)


def reverse(xs, lengths):
    return tf.reverse_sequence(xs, lengths, seq_axis=0, batch_axis=1)
