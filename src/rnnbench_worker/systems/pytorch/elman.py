"""Seed 003's one recurrent step, statement by statement as its slides have it, as a module and as a program."""

import torch
from torch import Tensor, nn

from .network import ReadGradient, ReadValue
from .program import TorchProgram


class ElmanStep(nn.Module):
    """The slides' first five statements; the sixth is `loss.backward()`."""

    def __init__(self, workload):
        super(ElmanStep, self).__init__()
        hidden, features = workload["hidden"], workload["features"]
        self.W_h = nn.Parameter(torch.empty(hidden, hidden))
        self.W_x = nn.Parameter(torch.empty(hidden, features))

    def forward(self, x: Tensor, prev_h: Tensor):
        h2h = torch.mm(self.W_h, prev_h.t())
        i2h = torch.mm(self.W_x, x.t())
        next_h = h2h + i2h
        next_h = next_h.tanh()
        loss = next_h.sum()
        return next_h, loss

    def assign(self, parameters):
        for name, parameter in self.named_parameters():
            parameter.data.copy_(torch.from_numpy(parameters[name]))


class ElmanProgram(TorchProgram):
    """The step gives its state and its loss at once: one is what `forward` is asked for, the other is trained."""

    def forward(self, fed):
        with torch.no_grad():
            return self._call(self._arguments(fed))[0]

    def _loss(self, fed):
        return self._call(self._arguments(fed))[1]

    def _arguments(self, fed):
        return fed["inputs"], fed["state"]

    def gradients(self, fed):
        self._optimiser.zero_grad()
        self._loss(fed).backward()
        return self._read(ReadGradient())

    def parameters(self):
        return self._read(ReadValue())

    def _read(self, read):
        return {name: read(parameter).numpy() for name, parameter in self._network.named_parameters()}


def build_step(job, parameters, wrap):
    step = ElmanStep(job["workload"])
    step.assign(parameters)
    return ElmanProgram(job, step, wrap)
