"""The whole network as pure functions of parameters and batch: embedding or features, stack, head, loss.

Inside it time comes first: `[steps, batch, width]`. Parameters have their canonical names, except that
all those of the layers are under "stack", as the stack holds them.
"""

import jax
import jax.numpy as jnp
import optax

from rnnbench_worker.canonical import of_layers
from rnnbench_worker.sequences import within


class Network(object):
    """What is fixed before any number is known; nothing in it changes."""

    def __init__(self, workload, stack, product):
        self._workload = workload
        self._stack = stack
        self._product = product

    def logits(self, parameters, batch):
        """`[steps, batch, classes]`, or `[batch, classes]`."""
        workload = self._workload
        xs = jnp.swapaxes(batch["inputs"], 0, 1)
        if workload["vocabulary"]:
            xs = parameters["embedding"][xs]
        hs = self._stack(parameters["stack"], xs, batch["lengths"] if workload["variable_length"] else None)
        if workload["head_on"] == "last-step":
            hs = hs[-1]
        logits = self._product(hs, parameters["head.w"])
        return logits + parameters["head.b"] if workload["head_bias"] else logits

    def loss(self, parameters, batch):
        """In fp32 whatever the precision: mean cross-entropy, or CTC as a mean over sequences."""
        logits = self.logits(parameters, batch).astype(jnp.float32)
        targets = batch["targets"]
        if self._workload["loss"] == "ctc":
            # Optax picks the labels' log-probabilities by a product with ones and zeros: TF32 would round them.
            with jax.default_matmul_precision("highest"):
                return ctc(logits, batch["lengths"], targets).mean()
        if logits.ndim == 3:
            targets = targets.T
        return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

    def own(self, arrays):
        """Parameters from canonical arrays."""
        own = {name: array for name, array in arrays.items() if not of_layers(name)}
        own["stack"] = self._stack.own(arrays)
        return own

    def canonical(self, own, join):
        """Back again, on the host."""
        arrays = {name: value for name, value in own.items() if name != "stack"}
        arrays.update(self._stack.canonical(own["stack"], join))
        return arrays


def ctc(logits, lengths, labels):
    """Of each sequence. Every label counts; steps beyond the end are padding."""
    padding = jnp.where(within(jnp.arange(logits.shape[0]), lengths), 0.0, 1.0)
    return optax.ctc_loss(
        jnp.swapaxes(logits, 0, 1), jnp.swapaxes(padding[:, :, 0], 0, 1), labels, jnp.zeros(labels.shape), blank_id=0
    )
