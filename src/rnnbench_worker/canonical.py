"""The canonical layout of parameters and batches, and the few ways in which frameworks' own layouts differ from it.

Names are those of `program.py`. A layer in one direction is the triple w `[in,4H]`, u `[H,4H]`, b `[4H]`, with its
gates in the order i, f, g, o along the last axis.
"""

import numpy as np

GATES = "ifgo"


# --- parameters -------------------------------------------------------------------------------------


def layer_directions(workload):
    """(layer, direction) of every triple w, u, b, in the order of computation."""
    return [(layer, direction) for layer in range(workload["layers"]) for direction in workload["directions"]]


def weight_names(layer, direction, parts="wub"):
    """The names of the weights of a layer in one direction: w, u and b of an LSTM, or another cell's `parts`."""
    return ["layer{}.{}.{}".format(layer, direction, part) for part in parts]


def is_stack_parameter(name):
    """Whether a canonical name belongs to the recurrent stack."""
    return name.startswith("layer")


def split_gates(array):
    """One array per gate."""
    return [np.ascontiguousarray(part) for part in np.split(array, len(GATES), axis=-1)]


def join_gates(parts):
    return np.concatenate(parts, axis=-1)


def to_gate_order(array, order):
    """A canonical array with its gates in another order, such as "igfo"."""
    parts = dict(zip(GATES, split_gates(array)))
    return join_gates([parts[gate] for gate in order])


def from_gate_order(array, order):
    """The inverse of `to_gate_order`."""
    parts = dict(zip(order, split_gates(array)))
    return join_gates([parts[gate] for gate in GATES])


def join_bias_values(first, second):
    """The one bias that two biases amount to, where a framework adds them."""
    return first + second


def join_bias_gradients(first, second):
    """Each of two added biases has the gradient of their sum, so their mean is that gradient too."""
    return (first + second) / 2


# --- the blank of CTC -------------------------------------------------------------------------------
# In the canonical layout the blank is the first class; some frameworks' CTC takes the last one. The columns of the
# head are rotated once, so that nothing has to be moved while a batch is computed.


def blank_last(array):
    """Canonical classes, along the last axis, with the blank moved to the end."""
    return np.roll(array, -1, axis=-1)


def blank_first(array):
    """The inverse of `blank_last`."""
    return np.roll(array, 1, axis=-1)


def labels_before_blank(labels):
    """The numbers of the labels when the blank comes after them."""
    return labels - 1


# --- batches ----------------------------------------------------------------------------------------


def with_lengths(batch, workload):
    """CTC needs the lengths of sequences and labels even where all are the same."""
    if workload["loss"] != "ctc":
        return dict(batch)
    count, labels = batch["targets"].shape
    completed = {"lengths": np.full(count, workload["steps"]), "target_lengths": np.full(count, labels)}
    completed.update(batch)
    return completed


def as_int32(batch):
    """Integers of 32 bits, which the kernels of JAX and TensorFlow take; every other array contiguous."""
    return {
        name: array.astype(np.int32) if array.dtype.kind == "i" else np.ascontiguousarray(array)
        for name, array in batch.items()
    }


def batch_first(logits):
    """[steps, batch, classes] as [batch, steps, classes]; [batch, classes] is returned unchanged."""
    return np.ascontiguousarray(logits.swapaxes(0, 1)) if logits.ndim == 3 else logits


def step_mask(positions, lengths):
    """[steps, batch, 1]: true where a step lies within its sequence. `positions` counts the steps from 0.

    Written with operators that NumPy's and every framework's arrays have, so that it serves all of them: eagerly,
    in a graph, and in TorchScript, where arguments without annotations are tensors.
    """
    return (positions[:, None] < lengths[None, :])[:, :, None]
