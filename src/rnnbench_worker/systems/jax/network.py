"""The whole network as pure functions of parameters and batch: embedding or features, stack, head, loss.

Inside it time comes first: `[steps, batch, width]`. Parameters have their canonical names; those of the
layers are as the granularity holds them.
"""

import jax
import jax.numpy as jnp
import optax

from rnnbench_worker.canonical import names
from rnnbench_worker.sequences import within

from .cells import advance


class Network(object):
    """What is fixed before any number is known; nothing in it changes."""

    def __init__(self, workload, gates, loop, product):
        self._workload = workload
        self._gates = gates
        self._loop = loop
        self._product = product

    def logits(self, parameters, batch):
        """`[steps, batch, classes]`, or `[batch, classes]`."""
        workload = self._workload
        xs = jnp.swapaxes(batch["inputs"], 0, 1)
        if workload["vocabulary"]:
            xs = parameters["embedding"][xs]
        mask = within(jnp.arange(workload["steps"]), batch["lengths"]) if workload["variable_length"] else None
        # The seeds' order: outer loop over depth, inner loop over time.
        for layer in range(workload["layers"]):
            outputs = []
            for direction in workload["directions"]:
                weights = [parameters[name] for name in names(layer, direction)]
                outputs.append(self._direction(weights, xs, mask, direction == "bwd"))
            xs = outputs[0] if len(outputs) == 1 else jnp.concatenate(outputs, axis=2)
        if workload["head_on"] == "last-step":
            xs = xs[-1]
        logits = self._product(xs, parameters["head.w"])
        return logits + parameters["head.b"] if workload["head_bias"] else logits

    def _direction(self, weights, xs, mask, reverse):
        """One layer in one direction."""

        def step(state, turn):
            x, inside = turn
            h, c = state
            new_h, new_c = advance(self._gates(weights, x, h, self._product), c)
            if inside is None:
                return (new_h, new_c), new_h
            # Outside its sequence the state stays; the way back so starts at each one's own end.
            h = jnp.where(inside, new_h, h)
            c = jnp.where(inside, new_c, c)
            return (h, c), jnp.where(inside, h, 0.0)

        zeros = jnp.zeros((xs.shape[1], self._workload["hidden"]), jnp.float32)
        return self._loop(step, (zeros, zeros), (xs, mask), reverse)

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


def ctc(logits, lengths, labels):
    """Of each sequence. Every label counts; steps beyond the end are padding."""
    padding = jnp.where(within(jnp.arange(logits.shape[0]), lengths), 0.0, 1.0)
    return optax.ctc_loss(
        jnp.swapaxes(logits, 0, 1), jnp.swapaxes(padding[:, :, 0], 0, 1), labels, jnp.zeros(labels.shape), blank_id=0
    )
