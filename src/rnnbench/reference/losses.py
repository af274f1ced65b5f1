"""Cross-entropy and CTC: the loss of a batch, and its gradient with respect to the logits."""

import numpy as np

from rnnbench.domain.workload import Workload
from rnnbench.reference.inputs import Batch, Booleans, Floats, Integers

BLANK = 0  # the class that means "no label" in CTC


def evaluate_loss(
    workload: Workload, logits: Floats, batch: Batch, shares: Floats | None = None
) -> tuple[float, Floats]:
    """The workload's loss for these logits, and its gradient.

    It is a mean over sequences. `shares` are their shares in it; None: all the same. With shares, a batch that
    repeats a few sequences is evaluated by these few, and a large batch in parts.
    """
    if workload.loss == "cross-entropy":
        return cross_entropy(logits, batch["targets"], shares)
    all_steps = np.full(len(logits), workload.steps)
    return ctc_loss(logits, batch["targets"], batch.get("lengths", all_steps), shares)


def equal_shares(count: int) -> Floats:
    return np.full(count, 1 / count)


def cross_entropy(logits: Floats, targets: Integers, shares: Floats | None = None) -> tuple[float, Floats]:
    """The mean over all targets: every step of every sequence, or one per sequence."""
    count = targets.size
    shares = equal_shares(len(logits)) if shares is None else shares
    weights = np.repeat(shares * len(shares) / count, count // len(shares))
    rows = np.arange(count), targets.ravel()
    # The logits of a language model take half a gigabyte, so every operation works on the same copy.
    work = logits.reshape(count, -1) - logits.max(axis=-1).reshape(count, 1)
    target_logits = work[rows]
    np.exp(work, out=work)
    totals = work.sum(axis=1, keepdims=True)
    loss = float(weights @ (np.log(totals[:, 0]) - target_logits))
    work /= totals
    work[rows] -= 1.0
    work *= weights[:, None]
    return loss, work.reshape(logits.shape)


def ctc_loss(logits: Floats, labels: Integers, lengths: Integers, shares: Floats | None = None) -> tuple[float, Floats]:
    """The mean of the sequences' negative log-likelihoods, which are not divided by the number of labels."""
    shares = equal_shares(len(logits)) if shares is None else shares
    values, gradient = negative_log_likelihood(logits, labels, lengths)
    return float(shares @ values), gradient * shares[:, None, None]


def negative_log_likelihood(logits: Floats, labels: Integers, lengths: Integers) -> tuple[Floats, Floats]:
    """For each sequence, `[batch]`, and its gradient with respect to the logits `[batch, steps, classes]`.

    Steps beyond a sequence's length have no effect. Labels that do not fit into a sequence give an infinite
    value, and gradients that are not a number.
    """
    batch, steps, classes = logits.shape
    log_probabilities = log_softmax(logits)
    states = _with_blanks(labels)
    emissions = np.take_along_axis(log_probabilities, states[:, None, :], axis=2)

    # The backward variables are the forward variables of the reversed sequence and labels. Both include
    # the emission of the current step, so it is subtracted once.
    reversed_time = _reversed_time(steps, lengths)
    forward = _forward_variables(emissions, states)
    backward = _forward_variables(emissions[np.arange(batch)[:, None], reversed_time, ::-1], states[:, ::-1])
    backward = backward[np.arange(batch)[:, None], reversed_time, ::-1]

    last = forward[np.arange(batch), lengths - 1]
    log_likelihood = np.logaddexp(last[:, -1], last[:, -2])

    # If the labels do not fit, -inf minus -inf is not a number. Some CPUs warn about it again in the product.
    with np.errstate(invalid="ignore"):
        posterior = np.exp(forward + backward - emissions - log_likelihood[:, None, None])
        expected = posterior @ np.eye(classes)[states]  # the sum over the states of each class
    gradient = np.exp(log_probabilities) - expected
    gradient[np.arange(steps) >= lengths[:, None]] = 0.0
    return -log_likelihood, gradient


def log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=-1, keepdims=True)  # so that no exponential overflows
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def _with_blanks(labels: Integers) -> Integers:
    """The states of a path: blank, label, blank, label, ..., blank."""
    batch, count = labels.shape
    states = np.full((batch, 2 * count + 1), BLANK, dtype=np.int64)
    states[:, 1::2] = labels
    return states


def _reversed_time(steps: int, lengths: Integers) -> Integers:
    """Time indices `[batch, steps]` that reverse each sequence within its own length."""
    time = np.arange(steps)
    reversed_time = lengths[:, None] - 1 - time
    return np.where(reversed_time >= 0, reversed_time, time)


def _forward_variables(emissions: Floats, states: Integers) -> Floats:
    """For each step and state, the log probability of all paths that lead to it."""
    batch, steps, count = emissions.shape
    forward = np.full((batch, steps, count), -np.inf)
    forward[:, 0, :2] = emissions[:, 0, :2]
    skippable = _skippable(states)
    before = np.full((batch, count + 2), -np.inf)  # padded in front with two impossible states
    for t in range(1, steps):
        before[:, 2:] = forward[:, t - 1]
        stay, step = before[:, 2:], before[:, 1:-1]
        skip = np.where(skippable, before[:, :-2], -np.inf)
        forward[:, t] = np.logaddexp(np.logaddexp(stay, step), skip) + emissions[:, t]
    return forward


def _skippable(states: Integers) -> Booleans:
    """Where the blank before a state may be skipped: before a label that differs from the previous label."""
    allowed = np.zeros(states.shape, dtype=np.bool_)
    allowed[:, 2:] = (states[:, 2:] != BLANK) & (states[:, 2:] != states[:, :-2])
    return allowed
