"""The granularities: a cell computes one time step, called as `h, c = cell(weights, x, (h, c))`.

It holds no numbers, only what a step is and how its weights lie in memory: `own` takes the canonical
`w [in,4H]`, `u [H,4H]`, `b [4H]` of a layer in one direction, `canonical` gives them back.
"""

import jax.numpy as jnp
from jax.nn import sigmoid

from rnnbench_worker.canonical import join_gates, split_gates


class FineCell(object):
    """One weight per gate: eight products a step."""

    def __init__(self, product):
        self._product = product

    def __call__(self, weights, x, state):
        h, c = state
        return advance([self._product(x, w) + self._product(h, u) + b for w, u, b in zip(*weights)], c)

    def own(self, w, u, b):
        return [split_gates(array) for array in (w, u, b)]

    def canonical(self, weights):
        return [join_gates(parts) for parts in weights]


class PackedCell(object):
    """The four gates in one matrix: two products a step."""

    def __init__(self, product):
        self._product = product

    def __call__(self, weights, x, state):
        h, c = state
        w, u, b = weights
        return advance(jnp.split(self._product(x, w) + self._product(h, u) + b, 4, axis=1), c)

    def own(self, w, u, b):
        return [w, u, b]

    def canonical(self, weights):
        return weights


def advance(gates, c):
    """The new state (h, c), from i, f, g, o before their nonlinearities."""
    i, f, g, o = gates
    c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
    h = sigmoid(o) * jnp.tanh(c)
    return h, c


GRANULARITIES = {"fine": FineCell, "packed": PackedCell}
