"""The abilities of Flax's system: steps around OptimizedLSTMCell, run by flax.nnx.RNN.

RNN passes nothing to a step but its input and the carry, so what does not change over time is a part of the carry.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from rnnbench_worker.abilities import CELLS, Cannot, arguments_of, step_around
from rnnbench_worker.systems.jax.abilities import AbilityOperators, prove_with
from rnnbench_worker.systems.jax.settings import product_for

from . import weights_of


def prove(job, ability, arrays):
    if ability in CELLS:
        offered = arguments_of(nnx.OptimizedLSTMCell.__init__)
        raise Cannot("flax.nnx.OptimizedLSTMCell has one step; none of its arguments is for another: " + offered)
    return prove_with(job, ability, arrays, FlaxLayer(job, ability))


class Around(nnx.Module):
    """A cell as RNN calls it. Its input has the flag as its last column, its output is h and c side by side."""

    num_feature_axes = 1

    def __init__(self, cell, step):
        self.cell = cell
        self.step = step

    def __call__(self, carry, inputs):
        h, c, extra, head = carry
        h, c = self.step(self.cell, head, inputs[:, :-1], inputs[:, -1:], h, c, extra)
        return (h, c, extra, head), jnp.concatenate([h, c], axis=1)


class FlaxLayer(object):
    """A layer as `prove_with` takes it."""

    def __init__(self, job, ability):
        self._structure = None
        self._step = step_around(ability, run_cell, AbilityOperators(product_for(job["precision"])))

    def __call__(self, weights, xs, flags, extra):
        # New variables: Flax's own belong to the level of differentiation in which they were made.
        cell = nnx.merge(self._structure, jax.tree.map(lambda array: array, weights["cell"]))
        zeros = jnp.zeros((xs.shape[1], cell.hidden_features), jnp.float32)
        rnn = nnx.RNN(Around(cell, self._step), rngs=False)
        # RNN needs a random generator even where the carry is given.
        return rnn(
            jnp.concatenate([xs, flags], axis=2),
            initial_carry=(zeros, zeros, extra, weights["head"]),
            time_major=True,
            rngs=nnx.Rngs(0),
        )

    def from_canonical(self, arrays):
        cell = nnx.OptimizedLSTMCell(arrays["w"].shape[0], arrays["u"].shape[0], rngs=nnx.Rngs(0))
        for parameter, name in zip(weights_of(cell), "wub"):
            parameter[...] = arrays[name]
        self._structure = nnx.graphdef(cell)
        return {"cell": nnx.state(cell), "head": arrays.get("head", np.zeros(1, np.float32))}

    def to_canonical(self, weights):
        own = weights_of(nnx.merge(self._structure, weights["cell"]))
        return dict({name: parameter[...] for name, parameter in zip("wub", own)}, head=weights["head"])


def run_cell(cell, x, h, c):
    """Flax has its carry the other way round."""
    (c, h), _ = cell((c, h), x)
    return h, c
