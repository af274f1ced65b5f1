"""The recurrent stack: layer upon layer, each by dynamic_rnn around a cell, or by the fused cell's one operator.

A stack is called as `stack(xs, lengths)` with `xs [steps, batch, width]` and returns
`[steps, batch, hidden × directions]`; steps beyond a sequence's length are zero.
"""

import numpy as np
import tensorflow as tf
from tensorflow.contrib import rnn

from rnnbench_worker.canonical import directions, from_order, names, to_order

#: The order of gates in all three; the sources call them i, j, f, o or i, ci, f, o.
ORDER = "igfo"


class Stack(object):
    """The seeds' order: outer loop over depth, inner loop over time."""

    def __init__(self, workload, cell):
        self._workload = workload
        self._cells = {}
        across = workload["hidden"] * len(workload["directions"])
        for layer, direction in directions(workload):
            # No offset of the forget gate: the reference has none.
            made = cell(workload["hidden"], forget_bias=0.0, name="layer{}_{}".format(layer, direction))
            self.make_variables(made, workload["input_width"] if layer == 0 else across)
            self._cells[layer, direction] = made

    def __call__(self, xs, lengths):
        for layer in range(self._workload["layers"]):
            cells = [self._cells[layer, direction] for direction in self._workload["directions"]]
            outputs = self.layer(cells, xs, lengths)
            xs = outputs[0] if len(outputs) == 1 else tf.concat(outputs, axis=2)
        return xs

    # --- parameters ---

    def variables(self):
        """Of each layer and direction the matrix [in+H,4H] and the bias."""
        return [variable for place in directions(self._workload) for variable in self._cells[place].variables]

    def own(self, parameters):
        """Canonical arrays as `variables` has them."""
        arrays = []
        for place in directions(self._workload):
            w, u, b = [to_order(parameters[name], ORDER) for name in names(*place)]
            arrays += [np.concatenate([w, u], axis=0), b]
        return arrays

    def canonical(self, arrays):
        parameters = {}
        for place, stacked, b in zip(directions(self._workload), arrays[0::2], arrays[1::2]):
            width = len(stacked) - self._workload["hidden"]
            parts = [from_order(array, ORDER) for array in (stacked[:width], stacked[width:], b)]
            parameters.update(zip(names(*place), parts))
        return parameters


class LoopStack(Stack):
    """dynamic_rnn: tf.while_loop over time around a cell."""

    def make_variables(self, cell, width):
        # A cell makes them when it is first called.
        batch = self._workload["batch"]
        cell(tf.placeholder(tf.float32, [batch, width]), cell.zero_state(batch, tf.float32))

    def layer(self, cells, xs, lengths):
        options = {"sequence_length": lengths, "dtype": tf.float32, "time_major": True}
        if len(cells) == 1:
            return [tf.nn.dynamic_rnn(cells[0], xs, **options)[0]]
        return tf.nn.bidirectional_dynamic_rnn(cells[0], cells[1], xs, **options)[0]


class FusedStack(Stack):
    """One operator for all steps of a layer in one direction."""

    def make_variables(self, cell, width):
        shape = [self._workload["steps"], self._workload["batch"], width]
        cell(tf.placeholder(tf.float32, shape), dtype=tf.float32)

    def layer(self, cells, xs, lengths):
        both = [cells[0]] + [rnn.TimeReversedFusedRNN(cell) for cell in cells[1:]]
        return [cell(xs, dtype=tf.float32, sequence_length=lengths)[0] for cell in both]


def make_stack(workload, granularity):
    if granularity == "layer":
        return FusedStack(workload, rnn.LSTMBlockFusedCell)
    return LoopStack(workload, {"packed": rnn.LSTMCell, "cell": rnn.LSTMBlockCell}[granularity])
