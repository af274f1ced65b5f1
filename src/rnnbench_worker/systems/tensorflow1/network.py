"""The whole network as a graph: embedding or features, stack, head, loss. Inside it time comes first."""

import tensorflow as tf

from rnnbench_worker.canonical import of_layers
from rnnbench_worker.systems.blank_last import blank_first, blank_last


class Network(object):
    """Makes its variables when it is made, in the graph of that moment; operators when they are asked for."""

    def __init__(self, workload, stack, parameters):
        self._workload = workload
        self._stack = stack
        self._others = {
            name: tf.get_variable(name, array.shape) for name, array in parameters.items() if not of_layers(name)
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

    def own(self, parameters):
        """Canonical arrays as `variables` has them."""
        return [self._turned(name, parameters[name], blank_last) for name in self._others] + self._stack.own(parameters)

    def canonical(self, arrays):
        count = len(self._others)
        parameters = {name: self._turned(name, array, blank_first) for name, array in zip(self._others, arrays)}
        parameters.update(self._stack.canonical(arrays[count:]))
        return parameters

    def _turned(self, name, array, turn):
        return turn(array) if self._workload["loss"] == "ctc" and name.startswith("head") else array
