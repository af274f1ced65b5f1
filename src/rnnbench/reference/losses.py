"""What training makes small: one number for a batch, and its gradient with respect to the logits."""

import numpy as np

from rnnbench.domain.workload import Workload
from rnnbench.reference.inputs import Batch, Booleans, Floats, Integers


def cross_entropy(logits: Floats, targets: Integers) -> tuple[float, Floats]:
    """The mean over all targets: every step of every sequence, or one for each sequence."""
    count = targets.size
    rows = np.arange(count), targets.ravel()
    # A language model's logits fill half a gigabyte, so one copy serves every step of the way.
    work = logits.reshape(count, -1) - logits.max(axis=-1).reshape(count, 1)
    of_targets = work[rows]
    np.exp(work, out=work)
    totals = work.sum(axis=1, keepdims=True)
    loss = float(np.mean(np.log(totals[:, 0]) - of_targets))
    work /= totals
    work[rows] -= 1.0
    work /= count
    return loss, work.reshape(logits.shape)


def connectionist(logits: Floats, labels: Integers, lengths: Integers) -> tuple[float, Floats]:
    """The mean of the sequences' negative log-likelihoods, each in full: not divided by its labels."""
    values, gradient = negative_log_likelihood(logits, labels, lengths)
    return float(values.mean()), gradient / len(values)


def evaluate_loss(workload: Workload, logits: Floats, batch: Batch) -> tuple[float, Floats]:
    """The workload's own loss of these logits."""
    if workload.loss == "cross-entropy":
        return cross_entropy(logits, batch["targets"])
    all_steps = np.full(len(logits), workload.steps)
    return connectionist(logits, batch["targets"], batch.get("lengths", all_steps))


BLANK = 0


def log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=-1, keepdims=True)  # so that no exponential overflows
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def negative_log_likelihood(logits: Floats, labels: Integers, lengths: Integers) -> tuple[Floats, Floats]:
    """Of each sequence, `[batch]`, and its gradient with respect to the logits `[batch, steps, classes]`.

    Steps beyond a sequence's length count for nothing. Labels that do not fit into a sequence have an
    infinite value, and gradients that are not numbers.
    """
    batch, steps, classes = logits.shape
    log_probabilities = log_softmax(logits)
    states = _states(labels)
    emissions = np.take_along_axis(log_probabilities, states[:, None, :], axis=2)

    # Reading sequence and labels from the end turns "all ways to go on from here" into "all ways to
    # get here": one recursion serves both, and what both count, the emission here, is taken off once.
    mirror = _mirror(steps, lengths)
    arrivals = _arrivals(emissions, states)
    departures = _arrivals(emissions[np.arange(batch)[:, None], mirror, ::-1], states[:, ::-1])
    departures = departures[np.arange(batch)[:, None], mirror, ::-1]

    last = arrivals[np.arange(batch), lengths - 1]
    log_likelihood = np.logaddexp(last[:, -1], last[:, -2])

    # When the labels do not fit, -inf less -inf is not a number. Some CPUs warn about it again in the product.
    with np.errstate(invalid="ignore"):
        posterior = np.exp(arrivals + departures - emissions - log_likelihood[:, None, None])
        expected = posterior @ np.eye(classes)[states]  # states of one class are added up
    gradient = np.exp(log_probabilities) - expected
    gradient[np.arange(steps) >= lengths[:, None]] = 0.0
    return -log_likelihood, gradient


def _states(labels: Integers) -> Integers:
    """Blank, label, blank, label, ..., blank."""
    batch, count = labels.shape
    states = np.full((batch, 2 * count + 1), BLANK, dtype=np.int64)
    states[:, 1::2] = labels
    return states


def _mirror(steps: int, lengths: Integers) -> Integers:
    """Time indices `[batch, steps]` that turn each sequence round within its own length."""
    time = np.arange(steps)
    turned = lengths[:, None] - 1 - time
    return np.where(turned >= 0, turned, time)


def _arrivals(emissions: Floats, states: Integers) -> Floats:
    """For each step and state, the log probability of all paths that have come to be there."""
    batch, steps, count = emissions.shape
    arrivals = np.full((batch, steps, count), -np.inf)
    arrivals[:, 0, :2] = emissions[:, 0, :2]
    skippable = _skippable(states)
    before = np.full((batch, count + 2), -np.inf)  # two states that nothing comes from lie in front
    for t in range(1, steps):
        before[:, 2:] = arrivals[:, t - 1]
        stay, step = before[:, 2:], before[:, 1:-1]
        skip = np.where(skippable, before[:, :-2], -np.inf)
        arrivals[:, t] = np.logaddexp(np.logaddexp(stay, step), skip) + emissions[:, t]
    return arrivals


def _skippable(states: Integers) -> Booleans:
    """Where the blank before a state may be left out: before a label other than the label before it."""
    allowed = np.zeros(states.shape, dtype=np.bool_)
    allowed[:, 2:] = (states[:, 2:] != BLANK) & (states[:, 2:] != states[:, :-2])
    return allowed
