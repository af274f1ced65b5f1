"""The losses: mean cross-entropy, and CTC as a mean over sequences.

PyTensor has no CTC of its own: here it is the forward recursion in logarithms, as one more scan.
"""

import pytensor
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.tensor.special import log_softmax

from rnnbench_worker.sequences import within

#: The logarithm of nothing. Infinity would make gradients that are no numbers.
NOTHING = -1e30


def loss_of(workload, logits, batch):
    if workload["loss"] == "ctc":
        return ctc(workload, logits, batch["lengths"], batch["targets"]).mean()
    targets = batch["targets"]
    if logits.ndim == 3:
        logits, targets = logits.reshape((-1, workload["classes"])), targets.T.ravel()
    return -log_softmax(logits, axis=1)[pt.arange(targets.shape[0]), targets].mean()


def ctc(workload, logits, lengths, labels):
    """Of each sequence. Every label counts; the blank is class 0."""
    # The states of the recursion: every label, with a blank before and after it.
    batch, width = workload["batch"], 2 * workload["labels"] + 1
    states = pt.zeros((batch, width), dtype=labels.dtype)[:, 1::2].set(labels)
    # The blank between two labels may be left out where they differ.
    skips = pt.zeros((batch, width), dtype=bool)[:, 3::2].set(pt.neq(labels[:, 1:], labels[:, :-1]))
    scores = log_softmax(logits, axis=2)[:, pt.arange(batch)[:, None], states]

    def step(score, inside, alpha, skips):
        reached = added(alpha, delayed(alpha, 1), pt.where(skips, delayed(alpha, 2), NOTHING))
        return pt.where(inside, reached + score, alpha)

    # As if all came from the first blank: one step from there is that blank or the first label.
    start = pt.full((batch, width), NOTHING)[:, 0].set(0.0)
    alphas = pytensor.scan(
        step,
        sequences=[scores, within(pt.arange(workload["steps"]), lengths)],
        outputs_info=[start],
        non_sequences=[skips],
        strict=True,
        return_updates=False,
    )
    return -added(alphas[-1, :, -1], alphas[-1, :, -2])


def delayed(alpha, count):
    """Each state's value moved to the one that comes `count` later."""
    return pt.concatenate([pt.full_like(alpha[:, :count], NOTHING), alpha[:, :-count]], axis=1)


def added(*logarithms):
    """The logarithm of the sum. Its gradient does not depend on the largest, which only keeps it in range."""
    largest = logarithms[0]
    for other in logarithms[1:]:
        largest = pt.maximum(largest, other)
    largest = disconnected_grad(largest)
    return largest + pt.log(sum(pt.exp(each - largest) for each in logarithms))
