"""A program of one compiled function, as Theano and PyTensor have them: what is the same for both."""

import numpy as np

from rnnbench_worker.batches import as_int32, with_lengths
from rnnbench_worker.program import Program


class FunctionProgram(Program):
    """One function, its phase's, compiled at its first call. It is done when it returns."""

    function = None

    def __init__(self, job):
        self._workload = job["workload"]

    def stage(self, batch):
        return as_int32(with_lengths(batch, self._workload))

    def feed(self, staged):
        """A function takes arrays of the host, and moves them itself where there is anywhere to move them to."""
        return staged

    def loss(self, handle):
        return float(handle)


def host(shared):
    """A copy of what a shared variable holds, wherever that is."""
    return np.array(shared.get_value(borrow=True))
