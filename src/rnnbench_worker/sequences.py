"""Sequences of different lengths, padded to the same: masks and reversing.

Written with operators that NumPy's and every framework's arrays have, so that it serves them all, in
eager mode, in a graph, and (unannotated arguments are tensors there) in TorchScript.
"""


def within(positions, lengths):
    """[steps, batch, 1]: true where a step lies within its sequence. `positions` counts the steps from 0."""
    return (positions[:, None] < lengths[None, :])[:, :, None]


def reversal(positions, lengths, where):
    """[steps, batch]: where each step's partner lies when every sequence is reversed by its own length.

    Steps beyond the end are their own partners, so reversing twice gives back what was there. `where` is
    the framework's three-way choice.
    """
    steps, ends = positions[:, None], lengths[None, :]
    return where(steps < ends, ends - 1 - steps, steps + 0 * ends)
