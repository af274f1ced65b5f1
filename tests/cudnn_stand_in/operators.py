"""cuDNN's LSTM in operators that run on a CPU: flat weights, gates i, f, g, o, two biases, sequences of any length."""

from collections import namedtuple

import tensorflow as tf

Canonical = namedtuple("Canonical", "weights biases")
Output = namedtuple("Output", "output")


class StandIn:
    def __init__(self, gates="ifgo", backward_first=False):
        self._gates = gates
        self._backward_first = backward_first

    def to_params(self, weights, biases, num_layers, num_units, input_size, **kind):
        """All matrices, then all biases, in one flat array."""
        sizes = shapes(num_layers, num_units, input_size, direction_count(kind["direction"]))
        assert [tuple(matrix.shape) for matrix in weights] == sizes
        assert [tuple(vector.shape) for vector in biases] == [(num_units,)] * len(sizes)
        return tf.concat([tf.reshape(array, [-1]) for array in list(weights) + list(biases)], axis=0)

    def to_canonical(self, params, num_params_weights, num_params_biases, num_layers, num_units, input_size, **kind):
        sizes = shapes(num_layers, num_units, input_size, direction_count(kind["direction"]))
        assert num_params_weights == num_params_biases == len(sizes)
        parts = tf.split(params, [rows * columns for rows, columns in sizes] + [num_units] * len(sizes))
        matrices, biases = parts[: len(sizes)], parts[len(sizes) :]
        return Canonical([tf.reshape(part, size) for part, size in zip(matrices, sizes, strict=True)], biases)

    def rnn(self, input, input_h, input_c, params, sequence_lengths, is_training, time_major, **kind):
        assert (is_training, time_major) == (True, True)
        assert (kind["rnn_mode"], kind["input_mode"]) == ("lstm", "linear_input")
        directions = direction_count(kind["direction"])
        layers, units = input_h.shape[0] // directions, input_h.shape[2]
        size = {"num_layers": layers, "num_units": units, "input_size": input.shape[2]}
        count = 8 * layers * directions
        made = self.to_canonical(params, count, count, **size, **kind)
        xs = input
        for layer in range(layers):
            outputs = []
            for direction in range(directions):
                place = layer * directions + direction
                held = layer * directions + (directions - 1 - direction if self._backward_first else direction)
                part = slice(8 * held, 8 * held + 8)
                state = input_h[place], input_c[place]
                ordered = reverse(xs, sequence_lengths) if direction else xs
                hs = self._layer(made.weights[part], made.biases[part], ordered, state, sequence_lengths)
                outputs.append(reverse(hs, sequence_lengths) if direction else hs)
            xs = tf.concat(outputs, axis=2)
        return Output(xs)

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


def direction_count(direction):
    return {"unidirectional": 1, "bidirectional": 2}[direction]


def shapes(layers, units, width, directions):
    """The shapes of all matrices: per layer and direction four for the input, then four for the state."""
    found = []
    for layer in range(layers):
        found += ([(units, width if layer == 0 else units * directions)] * 4 + [(units, units)] * 4) * directions
    return found


def reverse(xs, lengths):
    return tf.reverse_sequence(xs, lengths, seq_axis=0, batch_axis=1)
