"""The network as a symbolic graph: embedding or features, recurrent stack by pytensor.scan, head, and the losses.

Time is the first axis: `[steps, batch, width]`. Parameters are shared variables with canonical names and layout.
"""

import pytensor
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.tensor.special import log_softmax

import rnnbench_cells
from rnnbench_worker.canonical import step_mask, weight_names

#: The logarithm of zero in CTC. With infinity, gradients would be NaN.
LOG_ZERO = -1e30


def logits_of(workload, parameters, batch):
    """`[steps, batch, classes]`, or `[batch, classes]`."""
    inputs = batch["inputs"].swapaxes(0, 1)
    xs = parameters["embedding"][inputs] if workload["vocabulary"] else inputs
    mask = step_mask(pt.arange(workload["steps"]), batch["lengths"]) if workload["variable_length"] else None
    # The outer loop runs over depth, the inner one over time.
    for layer in range(workload["layers"]):
        outputs = [
            scan_direction(
                workload,
                [parameters[name] for name in weight_names(layer, direction, workload["weights"])],
                xs,
                mask,
                direction == "bwd",
            )
            for direction in workload["directions"]
        ]
        xs = outputs[0] if len(outputs) == 1 else pt.concatenate(outputs, axis=2)
    hs = xs[-1] if workload["head_on"] == "last-step" else xs
    logits = hs @ parameters["head.w"]
    return logits + parameters["head.b"] if workload["head_bias"] else logits


def scan_direction(workload, weights, xs, mask, reverse):
    """One layer in one direction, around a cell as its file says: the LSTM has four gates in one matrix."""
    cell, operators = rnnbench_cells.find(workload["cell"]), Operators(workload["hidden"])
    states = cell.STATES

    def step(*given):
        x, given = given[0], given[1:]
        inside, given = (None, given) if mask is None else (given[0], given[1:])
        state = dict(zip(states, given))
        new = cell.step(operators, dict(zip(workload["weights"], given[len(states) :])), x, state)
        if inside is None:
            return [new[name] for name in states]
        # Outside a sequence the state is kept, so that the backward direction starts at the sequence's own end.
        return [pt.where(inside, new[name], state[name]) for name in states]

    zeros = pt.zeros((workload["batch"], workload["hidden"]))
    found = pytensor.scan(
        step,
        sequences=[xs] if mask is None else [xs, mask],
        outputs_info=[zeros] * len(states),
        non_sequences=weights,
        go_backwards=reverse,
        strict=True,
        return_updates=False,
    )
    hs = found if len(states) == 1 else found[0]
    return hs[::-1] if reverse else hs


class Operators(object):
    """The vocabulary of rnnbench_cells."""

    sigmoid, tanh, softplus = staticmethod(pt.sigmoid), staticmethod(pt.tanh), staticmethod(pt.softplus)
    exp, log, constant = staticmethod(pt.exp), staticmethod(pt.log), staticmethod(disconnected_grad)
    maximum, minimum = staticmethod(pt.maximum), staticmethod(pt.minimum)

    @staticmethod
    def matmul(a, b):
        return a @ b

    @staticmethod
    def relu(a):
        return pt.maximum(a, 0.0)

    def __init__(self, hidden):
        self._hidden = hidden  # the width of every piece

    def split(self, a, count):
        return pt.split(a, [self._hidden] * count, n_splits=count, axis=a.ndim - 1)

    @staticmethod
    def concat(pieces):
        return pt.concatenate(pieces, axis=-1)

    @staticmethod
    def layer_norm(a, gain, bias):
        centred = a - a.mean(axis=-1, keepdims=True)
        return centred / pt.sqrt((centred**2).mean(axis=-1, keepdims=True) + rnnbench_cells.EPSILON) * gain + bias


# --- losses -------------------------------------------------------------------------------------------


def loss_of(workload, logits, batch):
    """Mean cross-entropy, or CTC as a mean over sequences."""
    if workload["loss"] == "ctc":
        return ctc(workload, logits, batch["lengths"], batch["targets"]).mean()
    targets = batch["targets"]
    if logits.ndim == 3:
        logits, targets = logits.reshape((-1, workload["classes"])), targets.T.ravel()
    return -log_softmax(logits, axis=1)[pt.arange(targets.shape[0]), targets].mean()


def ctc(workload, logits, lengths, labels):
    """The CTC loss of each sequence, by the forward recursion in logarithms: PyTensor has no CTC of its own.

    All labels count; the blank is class 0.
    """
    # The states of the recursion: the labels, with a blank before and after each.
    batch, width = workload["batch"], 2 * workload["labels"] + 1
    states = pt.zeros((batch, width), dtype=labels.dtype)[:, 1::2].set(labels)
    # The blank between two labels may be skipped where they differ.
    skips = pt.zeros((batch, width), dtype=bool)[:, 3::2].set(pt.neq(labels[:, 1:], labels[:, :-1]))
    scores = log_softmax(logits, axis=2)[:, pt.arange(batch)[:, None], states]

    def step(score, inside, alpha, skips):
        reached = log_sum(alpha, shifted(alpha, 1), pt.where(skips, shifted(alpha, 2), LOG_ZERO))
        return pt.where(inside, reached + score, alpha)

    # As if the first blank had been reached before: one step from there is that blank or the first label.
    start = pt.full((batch, width), LOG_ZERO)[:, 0].set(0.0)
    alphas = pytensor.scan(
        step,
        sequences=[scores, step_mask(pt.arange(workload["steps"]), lengths)],
        outputs_info=[start],
        non_sequences=[skips],
        strict=True,
        return_updates=False,
    )
    return -log_sum(alphas[-1, :, -1], alphas[-1, :, -2])


def shifted(alpha, count):
    """The value of each state moved to the state `count` places later."""
    return pt.concatenate([pt.full_like(alpha[:, :count], LOG_ZERO), alpha[:, :-count]], axis=1)


def log_sum(*logarithms):
    """The logarithm of the sum. The largest term only keeps it in range, so it takes no part in the gradient."""
    largest = logarithms[0]
    for other in logarithms[1:]:
        largest = pt.maximum(largest, other)
    largest = disconnected_grad(largest)
    return largest + pt.log(sum(pt.exp(each - largest) for each in logarithms))
