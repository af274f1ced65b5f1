"""The granularities: how the four gates of a step are computed, and how their weights lie in memory.

`gates(weights, x, h, product)` gives i, f, g, o before their nonlinearities; all else of a step is the
same for all. `split` takes one canonical array of a layer apart, `join` puts it together again.
"""

from collections import namedtuple

import jax.numpy as jnp
from jax.nn import sigmoid

from rnnbench_worker.canonical import join_gates, split_gates

Granularity = namedtuple("Granularity", "gates split join")


def fine_gates(weights, x, h, product):
    """One weight per gate: eight products a step."""
    return [product(x, w) + product(h, u) + b for w, u, b in zip(*weights)]


def packed_gates(weights, x, h, product):
    """The four gates in one matrix: two products a step."""
    w, u, b = weights
    return jnp.split(product(x, w) + product(h, u) + b, 4, axis=1)


def advance(gates, c):
    """The new state (h, c)."""
    i, f, g, o = gates
    c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
    h = sigmoid(o) * jnp.tanh(c)
    return h, c


def as_it_is(array):
    return array


GRANULARITIES = {
    "fine": Granularity(fine_gates, split_gates, join_gates),
    "packed": Granularity(packed_gates, as_it_is, as_it_is),
}
