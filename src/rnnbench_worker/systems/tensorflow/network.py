"""The whole network as functions of variables and batch: embedding or features, stack, head, loss.

Inside it time comes first: `[steps, batch, width]`.
"""

import tensorflow as tf

from rnnbench_worker.canonical import of_layers

from .precision import product_for


class Network(object):
    """What is fixed before any number is known; the variables are given at every call."""

    def __init__(self, job, stack, native_ctc):
        self._workload = job["workload"]
        self._product = product_for(job["precision"])
        self._stack = stack
        self._native_ctc = native_ctc

    def logits(self, variables, batch):
        """`[steps, batch, classes]`, or `[batch, classes]`."""
        workload = self._workload
        xs = batch["inputs"]
        if workload["vocabulary"]:
            xs = tf.gather(variables["embedding"], tf.transpose(xs))
        else:
            xs = tf.transpose(xs, [1, 0, 2])
        hs = self._stack(variables["stack"], xs, batch["lengths"] if workload["variable_length"] else None)
        if workload["head_on"] == "last-step":
            logits = self._product(hs[-1], variables["head.w"])
        else:
            # As one product of two matrices: with a third axis it would be one product per step.
            flat = self._product(tf.reshape(hs, [-1, hs.shape[2]]), variables["head.w"])
            logits = tf.reshape(flat, [hs.shape[0], hs.shape[1], workload["classes"]])
        return logits + variables["head.b"] if workload["head_bias"] else logits

    def loss(self, variables, batch):
        """In fp32 whatever the precision: mean cross-entropy, or CTC as a mean over sequences."""
        logits = self.logits(variables, batch)
        if self._workload["loss"] == "ctc":
            return tf.reduce_mean(self._ctc(logits, batch))
        targets = tf.transpose(batch["targets"]) if len(logits.shape) == 3 else batch["targets"]
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))

    def _ctc(self, logits, batch):
        """Sparse labels choose TensorFlow's CTC kernel (cuDNN's on CUDA); dense ones its CTC of primitive operators."""
        labels = tf.sparse.from_dense(batch["targets"]) if self._native_ctc else batch["targets"]
        return tf.nn.ctc_loss(
            labels=labels,
            logits=logits,
            label_length=batch["target_lengths"],
            logit_length=batch["lengths"],
            logits_time_major=True,
            blank_index=0,
        )

    # --- parameters ---

    def own(self, parameters):
        """Canonical arrays as this network holds them."""
        arrays = {name: array for name, array in parameters.items() if not of_layers(name)}
        arrays["stack"] = self._stack.own(parameters)
        return arrays

    def canonical(self, arrays, join):
        parameters = {name: array for name, array in arrays.items() if name != "stack"}
        parameters.update(self._stack.canonical(arrays["stack"], join))
        return parameters
