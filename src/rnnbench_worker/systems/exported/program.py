"""A PyTorch network in another engine: it goes forward, and that is all.

The engine is made at the first call, so that the first call's time holds tracing, exporting and compiling.
Its peak of host memory is the exporter's too: PyTorch is in the process.
"""

import numpy as np
import torch

from rnnbench_worker.batches import steps_first
from rnnbench_worker.program import Program
from rnnbench_worker.systems.pytorch.network import Network, assign
from rnnbench_worker.systems.pytorch.stacks import VendorStack


class ExportedProgram(Program):
    """What is the same for every engine; `open_engine` and `forward` are its own."""

    def __init__(self, job, parameters):
        self._job = job
        self._workload = job["workload"]
        self._network = Network(self._workload, VendorStack(self._workload)).eval()
        assign(self._network, self._workload, parameters)
        self._engine = None

    def stage(self, batch):
        """The arguments alone: targets are for training."""
        return {name: np.ascontiguousarray(batch[name]) for name in argument_names(self._workload)}

    def feed(self, staged):
        return staged

    def engine(self):
        if self._engine is None:
            with torch.no_grad():
                self._engine = self.open_engine(self._network, example(self._workload))
        return self._engine

    def open_engine(self, network, arguments):
        """The network as the engine has it, traced with these arguments."""
        raise NotImplementedError

    def logits(self, handle):
        return steps_first(handle)

    def parameter_count(self):
        return sum(parameter.numel() for parameter in self._network.parameters())


def argument_names(workload):
    """What the network takes, in order."""
    return ["inputs", "lengths"] if workload["variable_length"] else ["inputs"]


def example(workload):
    """Arguments of the right shapes and types: tracing does not look at the numbers."""
    count, steps = workload["batch"], workload["steps"]
    if workload["vocabulary"]:
        inputs = torch.zeros(count, steps, dtype=torch.int64)
    else:
        inputs = torch.zeros(count, steps, workload["input_width"])
    return (inputs, torch.full((count,), steps)) if workload["variable_length"] else (inputs,)
