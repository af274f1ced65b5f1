"""equinox.nn.LSTMCell as a cell of JAX's loop: the module itself is what the loop calls weights.

A module is a tree of arrays, here of nothing else, so `jax.jit`, `jax.grad` and Optax take it as it is,
without Equinox's filtered versions of them.
"""

import equinox
import jax
import jax.numpy as jnp


class EquinoxCell(object):
    """Weights transposed, gates i, f, g, o, one bias; written for one sequence and mapped over the batch."""

    def __init__(self, precision):
        self._bf16 = precision == "bf16"

    def __call__(self, weights, x, state):
        h, c = state
        if self._bf16:
            # At every step, as JAX's own product does: the gradients are so added up in fp32. The memory c
            # stays in fp32 and takes h with it.
            weights, x, h = jax.tree.map(lambda array: array.astype(jnp.bfloat16), (weights, x, h))
        return jax.vmap(weights)(x, (h, c))

    def own(self, w, u, b):
        cell = equinox.nn.LSTMCell(w.shape[0], u.shape[0], key=jax.random.key(0))
        return equinox.tree_at(arrays_of, cell, (w.T, u.T, b))

    def canonical(self, weights):
        w, u, b = arrays_of(weights)
        return [w.T, u.T, b]


def arrays_of(cell):
    return cell.weight_ih, cell.weight_hh, cell.bias
