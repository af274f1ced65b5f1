"""Cells of users, good and bad, for the tests of `rnnbench cell`. Imported by workers only."""

import torch
from torch import nn


class Gated(nn.Module):
    """Its state is a tensor, and it says itself how it begins."""

    def __init__(self, width, hidden, scale=1.0):
        super().__init__()
        self.gates = nn.Linear(width + hidden, 2 * hidden)
        self.hidden, self.scale = hidden, scale

    def initial_state(self, x):
        return torch.zeros(x.shape[0], self.hidden, device=x.device)

    def forward(self, x, h):
        z, n = self.gates(torch.cat([x, h], 1)).chunk(2, 1)
        return torch.lerp(self.scale * torch.tanh(n), h, torch.sigmoid(z))


class Projected(nn.Module):
    """It returns an output of its own, narrower than the state, and knows its sizes by name."""

    def __init__(self, hidden_size, input_size):
        super().__init__()
        self.step, self.out = nn.GRUCell(input_size, hidden_size), nn.Linear(hidden_size, 2)

    def forward(self, x, h):
        h = self.step(x, h)
        return self.out(h), h


class OtherInScript(Gated):
    """TorchScript computes something else than Python."""

    def forward(self, x, h):
        z, n = self.gates(torch.cat([x, h], 1)).chunk(2, 1)
        if torch.jit.is_scripting():
            n = n * 1.01
        return torch.lerp(torch.tanh(n), h, torch.sigmoid(z))


class OtherInCompile(Gated):
    """torch.compile computes something else than Python."""

    def forward(self, x, h):
        new = super().forward(x, h)
        return 1.01 * new if torch.compiler.is_compiling() else new


CALLS = []


class Counting(Gated):
    """Hidden state: it is another cell after nine calls. What calls it a few times and repeats that is wrong."""

    def forward(self, x, h):
        CALLS.append(1)
        new = super().forward(x, h)
        return new if len(CALLS) <= 9 else 0.9 * new


class Random(Gated):
    def forward(self, x, h):
        return nn.functional.dropout(super().forward(x, h), 0.5)


class WrongShape(Gated):
    def forward(self, x, h):
        return self.gates(torch.cat([x, h], 1))


class Fails(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.product = nn.Linear(width + 1, hidden)

    def forward(self, x, h):
        return self.product(x) + h


class Picky(Gated):
    def __init__(self, width, hidden, heads):
        super().__init__(width, hidden)
        self.heads = heads


class NoModule:
    pass
