"""The whole network as a graph: embedding or features, recurrent stack, head, loss. Time is the first axis inside.

A stack is called as `stack(xs, lengths)` with `xs [steps, batch, width]` and returns
`[steps, batch, hidden × directions]`; steps after the end of a sequence are zero.
"""

import numpy as np
import tensorflow as tf
from tensorflow.contrib import rnn

from rnnbench_worker.canonical import (
    blank_first,
    blank_last,
    from_gate_order,
    is_stack_parameter,
    layer_directions,
    to_gate_order,
    weight_names,
)

#: The order of gates in all three LSTMs; the sources call them i, j, f, o or i, ci, f, o.
GATE_ORDER = "igfo"


class Network(object):
    """Its variables are created with it, in the graph that is then the default; its operators when asked for."""

    def __init__(self, workload, stack, parameters):
        self._workload = workload
        self._stack = stack
        self._others = {
            name: tf.get_variable(name, array.shape)
            for name, array in parameters.items()
            if not is_stack_parameter(name)
        }
        steps = [workload["batch"], workload["steps"]]
        if workload["vocabulary"]:
            self.batch = {"inputs": tf.placeholder(tf.int32, steps)}
        else:
            self.batch = {"inputs": tf.placeholder(tf.float32, steps + [workload["features"]])}
        if workload["variable_length"] or workload["loss"] == "ctc":
            self.batch["lengths"] = tf.placeholder(tf.int32, steps[:1])
        if workload["loss"] == "ctc":
            self.batch["targets"] = tf.sparse_placeholder(tf.int32)
        else:
            on_last = workload["head_on"] == "last-step"
            self.batch["targets"] = tf.placeholder(tf.int32, steps[:1] if on_last else steps)

    def logits(self):
        """`[steps, batch, classes]`, or `[batch, classes]`."""
        workload, weights = self._workload, self._others
        if workload["vocabulary"]:
            xs = tf.nn.embedding_lookup(weights["embedding"], tf.transpose(self.batch["inputs"]))
        else:
            xs = tf.transpose(self.batch["inputs"], [1, 0, 2])
        hs = self._stack(xs, self.batch["lengths"] if workload["variable_length"] else None)
        width = weights["head.w"].shape[0].value
        if workload["head_on"] == "last-step":
            logits = tf.matmul(hs[-1], weights["head.w"])
        else:
            flat = tf.matmul(tf.reshape(hs, [-1, width]), weights["head.w"])
            logits = tf.reshape(flat, [workload["steps"], workload["batch"], workload["classes"]])
        return logits + weights["head.b"] if workload["head_bias"] else logits

    def loss(self):
        """Mean cross-entropy, or CTC as a mean over sequences."""
        logits, targets = self.logits(), self.batch["targets"]
        if self._workload["loss"] == "ctc":
            return tf.reduce_mean(tf.nn.ctc_loss(targets, logits, self.batch["lengths"]))
        if len(logits.shape) == 3:
            targets = tf.transpose(targets)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))

    # --- parameters ---

    def variables(self):
        return list(self._others.values()) + self._stack.variables()

    def from_canonical(self, parameters):
        """Canonical arrays in the order and layout of `variables`."""
        return [
            self._moved_blank(name, parameters[name], blank_last) for name in self._others
        ] + self._stack.from_canonical(parameters)

    def to_canonical(self, arrays):
        count = len(self._others)
        parameters = {name: self._moved_blank(name, array, blank_first) for name, array in zip(self._others, arrays)}
        parameters.update(self._stack.to_canonical(arrays[count:]))
        return parameters

    def _moved_blank(self, name, array, move_blank):
        return move_blank(array) if self._workload["loss"] == "ctc" and name.startswith("head") else array


# --- stacks -------------------------------------------------------------------------------------------


class Stack(object):
    """The outer loop runs over depth, the inner one over time; subclasses implement the inner one."""

    def __init__(self, workload, cell):
        self._workload = workload
        self._cells = {}
        across = workload["hidden"] * len(workload["directions"])
        for layer, direction in layer_directions(workload):
            # No offset of the forget gate, because the reference has none.
            new_cell = cell(workload["hidden"], forget_bias=0.0, name="layer{}_{}".format(layer, direction))
            self.make_variables(new_cell, workload["input_width"] if layer == 0 else across)
            self._cells[layer, direction] = new_cell

    def __call__(self, xs, lengths):
        for layer in range(self._workload["layers"]):
            cells = [self._cells[layer, direction] for direction in self._workload["directions"]]
            outputs = self.layer(cells, xs, lengths)
            xs = outputs[0] if len(outputs) == 1 else tf.concat(outputs, axis=2)
        return xs

    # --- parameters ---

    def variables(self):
        """The matrix [in+H,4H] and the bias of each layer and direction."""
        return [variable for place in layer_directions(self._workload) for variable in self._cells[place].variables]

    def from_canonical(self, parameters):
        """Canonical arrays in the order and layout of `variables`."""
        arrays = []
        for place in layer_directions(self._workload):
            w, u, b = [to_gate_order(parameters[name], GATE_ORDER) for name in weight_names(*place)]
            arrays += [np.concatenate([w, u], axis=0), b]
        return arrays

    def to_canonical(self, arrays):
        parameters = {}
        for place, stacked, b in zip(layer_directions(self._workload), arrays[0::2], arrays[1::2]):
            width = len(stacked) - self._workload["hidden"]
            parts = [from_gate_order(array, GATE_ORDER) for array in (stacked[:width], stacked[width:], b)]
            parameters.update(zip(weight_names(*place), parts))
        return parameters


class LoopStack(Stack):
    """dynamic_rnn: tf.while_loop over time around a cell."""

    def make_variables(self, cell, width):
        # A cell creates them when it is first called.
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
