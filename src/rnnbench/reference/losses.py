"""What training makes small: one number for a batch, and its gradient with respect to the logits."""

import numpy as np

from rnnbench.domain.workload import Workload
from rnnbench.reference.ctc import negative_log_likelihood
from rnnbench.reference.arrays import Floats, Integers
from rnnbench.reference.inputs import Batch


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
