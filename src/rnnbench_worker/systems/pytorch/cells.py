"""The cells: one time step each, at three granularities, all called as `h, c = cell(x, (h, c))`.

Each knows how its own parameters lie beside the canonical `w [in,4H]`, `u [H,4H]`, `b [4H]`:
`assign` takes canonical arrays, `canonical` gives them back from whatever `read` reads of a parameter
(its value, or its gradient).
"""

from typing import Tuple

import torch
from torch import Tensor, nn


class FineCell(nn.Module):
    """One weight per gate: eight products a step, every operator a primitive."""

    def __init__(self, width, hidden):
        super(FineCell, self).__init__()
        for gate in "ifgo":
            setattr(self, "w_" + gate, nn.Parameter(torch.empty(width, hidden)))
            setattr(self, "u_" + gate, nn.Parameter(torch.empty(hidden, hidden)))
            setattr(self, "b_" + gate, nn.Parameter(torch.empty(hidden)))

    def forward(self, x: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
        h, c = state
        i = torch.sigmoid(torch.matmul(x, self.w_i) + torch.matmul(h, self.u_i) + self.b_i)
        f = torch.sigmoid(torch.matmul(x, self.w_f) + torch.matmul(h, self.u_f) + self.b_f)
        g = torch.tanh(torch.matmul(x, self.w_g) + torch.matmul(h, self.u_g) + self.b_g)
        o = torch.sigmoid(torch.matmul(x, self.w_o) + torch.matmul(h, self.u_o) + self.b_o)
        c = f * c + i * g
        h = o * torch.tanh(c)
        return h, c

    def assign(self, w, u, b):
        for kind, value in (("w_", w), ("u_", u), ("b_", b)):
            for gate, part in zip("ifgo", torch.chunk(value, 4, dim=-1)):
                getattr(self, kind + gate).data.copy_(part)

    def canonical(self, read):
        return [torch.cat([read(getattr(self, kind + gate)) for gate in "ifgo"], dim=-1) for kind in ("w_", "u_", "b_")]


class PackedCell(nn.Module):
    """The four gates in one matrix: two products a step, every operator a primitive."""

    def __init__(self, width, hidden):
        super(PackedCell, self).__init__()
        self.w = nn.Parameter(torch.empty(width, 4 * hidden))
        self.u = nn.Parameter(torch.empty(hidden, 4 * hidden))
        self.b = nn.Parameter(torch.empty(4 * hidden))

    def forward(self, x: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
        h, c = state
        gates = torch.matmul(x, self.w) + torch.matmul(h, self.u) + self.b
        i, f, g, o = torch.chunk(gates, 4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c

    def assign(self, w, u, b):
        for parameter, value in ((self.w, w), (self.u, u), (self.b, b)):
            parameter.data.copy_(value)

    def canonical(self, read):
        return [read(self.w), read(self.u), read(self.b)]


class FusedCell(nn.LSTMCell):
    """torch.nn.LSTMCell: one fused operator a step, weights transposed, two biases."""

    def assign(self, w, u, b):
        assign_transposed((self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh), w, u, b)

    def canonical(self, read):
        return read_transposed((self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh), read)


def assign_transposed(own, w, u, b):
    """torch's own LSTM layout: [4H,in], [4H,H] and two biases, the second of which starts at zero."""
    for parameter, value in zip(own, (w.t(), u.t(), b, torch.zeros_like(b))):
        parameter.data.copy_(value)


def read_transposed(own, read):
    """The two biases are only ever added: their values add up, and both get the same gradient."""
    w, u, first, second = own
    return [read(w).t(), read(u).t(), read.join(read(first), read(second))]


GRANULARITIES = {"fine": FineCell, "packed": PackedCell, "cell": FusedCell}
