"""Any cell of rnnbench_cells in PyTorch: its file's step over PyTorch's operators, and a loop over time around it."""

import torch
from torch import nn

import rnnbench_cells


class AnyCell(nn.Module):
    """A cell of rnnbench_cells, as its file says. Its weights are canonical."""

    def __init__(self, name, width, hidden):
        super(AnyCell, self).__init__()
        self.module = rnnbench_cells.find(name)
        self.states = len(self.module.STATES)
        self.names = list(self.module.parameters(width, hidden))
        for part, shape in self.module.parameters(width, hidden).items():
            setattr(self, part, nn.Parameter(torch.empty(*shape)))

    def forward(self, x, state):
        weights = {part: getattr(self, part) for part in self.names}
        new = self.module.step(Operators, weights, x, dict(zip(self.module.STATES, state)))
        return tuple(new[part] for part in self.module.STATES)

    def assign(self, *arrays):
        for part, array in zip(self.names, arrays):
            getattr(self, part).data.copy_(array)

    def canonical(self, read):
        return [read(getattr(self, part)) for part in self.names]


class Operators(object):
    """The vocabulary of rnnbench_cells."""

    # They are functions of C, and so no methods.
    matmul, sigmoid, tanh, relu, exp, log = torch.matmul, torch.sigmoid, torch.tanh, torch.relu, torch.exp, torch.log
    softplus = staticmethod(nn.functional.softplus)

    @staticmethod
    def maximum(a, b):
        return torch.clamp(a, min=b) if isinstance(b, float) else torch.maximum(a, b)

    @staticmethod
    def minimum(a, b):
        return torch.clamp(a, max=b) if isinstance(b, float) else torch.minimum(a, b)

    @staticmethod
    def constant(a):
        return a.detach()

    @staticmethod
    def split(a, count):
        return torch.chunk(a, count, dim=-1)

    @staticmethod
    def concat(pieces):
        return torch.cat(pieces, dim=-1)

    @staticmethod
    def layer_norm(a, gain, bias):
        shift = None if isinstance(bias, float) else bias
        return nn.functional.layer_norm(a, a.shape[-1:], gain, shift, rnnbench_cells.EPSILON)


class AnyDirection(nn.Module):
    """A `Direction` around a cell with any number of states."""

    def __init__(self, cell, hidden, reverse):
        super(AnyDirection, self).__init__()
        self.cell = cell
        self.hidden = hidden
        self.reverse = reverse

    def forward(self, xs, mask):
        zeros = torch.zeros(xs.size(1), self.hidden, dtype=xs.dtype, device=xs.device)
        state = (zeros,) * self.cell.states
        outputs = [zeros] * xs.size(0)
        inputs = xs.unbind(0)
        for t in reversed(range(xs.size(0))) if self.reverse else range(xs.size(0)):
            new = self.cell(inputs[t], state)
            if mask is None:
                state, outputs[t] = new, new[0]
            else:
                state = tuple(torch.where(mask[t], one, old) for one, old in zip(new, state))
                outputs[t] = torch.where(mask[t], state[0], zeros)
        return torch.stack(outputs)
