"""The canonical layout, and the few ways in which frameworks' own layouts differ from it.

Names are those of `program.py`. A layer in one direction is the triple w `[in,4H]`, u `[H,4H]`, b `[4H]`,
its gates in the order i, f, g, o along the last axis.
"""

import numpy as np

GATES = "ifgo"


def directions(workload):
    """(layer, direction) of every w, u, b there is, in the order of computing."""
    return [(layer, direction) for layer in range(workload["layers"]) for direction in workload["directions"]]


def names(layer, direction):
    """What the three arrays of a layer in one direction are called."""
    return ["layer{}.{}.{}".format(layer, direction, part) for part in "wub"]


def of_layers(name):
    """Whether a canonical name is one of the recurrent stack's."""
    return name.startswith("layer")


def split_gates(array):
    """One array per gate."""
    return [np.ascontiguousarray(part) for part in np.split(array, len(GATES), axis=-1)]


def join_gates(parts):
    return np.concatenate(parts, axis=-1)


def to_order(array, order):
    """A canonical array with its gates in another order, such as "igfo"."""
    parts = dict(zip(GATES, split_gates(array)))
    return join_gates([parts[gate] for gate in order])


def from_order(array, order):
    """Back again."""
    parts = dict(zip(order, split_gates(array)))
    return join_gates([parts[gate] for gate in GATES])


def added(first, second):
    """Two biases that are only ever added: as values, their sum."""
    return first + second


def averaged(first, second):
    """As gradients, either: both have that of the sum."""
    return (first + second) / 2
