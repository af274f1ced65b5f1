"""The network as a symbolic graph: embedding or features, recurrent stack by pytensor.scan, head, and the losses.

Time is the first axis: `[steps, batch, width]`. Parameters are shared variables with canonical names and layout.
"""

import pytensor
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.tensor.special import log_softmax

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
                workload, [parameters[name] for name in weight_names(layer, direction)], xs, mask, direction == "bwd"
            )
            for direction in workload["directions"]
        ]
        xs = outputs[0] if len(outputs) == 1 else pt.concatenate(outputs, axis=2)
    hs = xs[-1] if workload["head_on"] == "last-step" else xs
    logits = hs @ parameters["head.w"]
    return logits + parameters["head.b"] if workload["head_bias"] else logits


def scan_direction(workload, weights, xs, mask, reverse):
    """One layer in one direction: four gates in one matrix, two products per step."""

    def step(x, h, c, w, u, b):
        i, f, g, o = pt.split(x @ w + h @ u + b, [workload["hidden"]] * 4, n_splits=4, axis=1)
        c = pt.sigmoid(f) * c + pt.sigmoid(i) * pt.tanh(g)
        h = pt.sigmoid(o) * pt.tanh(c)
        return h, c

    def masked_step(x, inside, h, c, w, u, b):
        # Outside a sequence the state is kept, so that the backward direction starts at the sequence's own end.
        new_h, new_c = step(x, h, c, w, u, b)
        return pt.where(inside, new_h, h), pt.where(inside, new_c, c)

    zeros = pt.zeros((workload["batch"], workload["hidden"]))
    hs, _ = pytensor.scan(
        step if mask is None else masked_step,
        sequences=[xs] if mask is None else [xs, mask],
        outputs_info=[zeros, zeros],
        non_sequences=weights,
        go_backwards=reverse,
        strict=True,
        return_updates=False,
    )
    return hs[::-1] if reverse else hs


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
