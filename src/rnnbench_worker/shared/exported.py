"""A PyTorch network in an engine that only runs networks trained elsewhere, so there is no phase but `forward`.

The engine is created at the first call, so that the time of that call includes tracing, exporting and compiling.
The peak of host memory includes the exporter, because PyTorch is in the same process.
"""

import numpy as np
import torch

from rnnbench_worker.canonical import batch_first
from rnnbench_worker.program import Program
from rnnbench_worker.systems.pytorch.network import Network, assign
from rnnbench_worker.systems.pytorch.stacks import VendorStack


class ExportedProgram(Program):
    """What all engines have in common; each has its own `open_engine` and `forward`."""

    def __init__(self, job, parameters):
        self._job = job
        self._workload = job["workload"]
        self._network = Network(self._workload, VendorStack(self._workload)).eval()
        assign(self._network, self._workload, parameters)
        self._engine = None

    def stage(self, batch):
        """Only the network's arguments: targets are for training."""
        return {name: np.ascontiguousarray(batch[name]) for name in argument_names(self._workload)}

    def feed(self, staged):
        return staged

    def engine(self):
        if self._engine is None:
            with torch.no_grad():
                self._engine = self.open_engine(self._network, example_arguments(self._workload))
        return self._engine

    def open_engine(self, network, arguments):
        """The network in the engine's own form, traced with these arguments."""
        raise NotImplementedError

    def logits(self, handle):
        return batch_first(handle)

    def parameter_count(self):
        return sum(parameter.numel() for parameter in self._network.parameters())


def argument_names(workload):
    """The names of the network's arguments, in order."""
    return ["inputs", "lengths"] if workload["variable_length"] else ["inputs"]


def example_arguments(workload):
    """Arguments of the right shapes and types: tracing does not look at their values."""
    count, steps = workload["batch"], workload["steps"]
    if workload["vocabulary"]:
        inputs = torch.zeros(count, steps, dtype=torch.int64)
    else:
        inputs = torch.zeros(count, steps, workload["input_width"])
    return (inputs, torch.full((count,), steps)) if workload["variable_length"] else (inputs,)


def builds(program):
    """A network is exported and compiled once, for the shapes it was traced with."""
    return int(program._engine is not None)
