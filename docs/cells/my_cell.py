"""A peephole LSTM, as its author wrote it for one step: an example for `rnnbench cell`."""

import torch
from torch import Tensor, nn


class PeepholeLSTM(nn.Module):
    """An LSTM whose gates see the cell state (Gers and Schmidhuber 2000)."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.gates = nn.Linear(input_size + hidden_size, 4 * hidden_size)
        self.peepholes = nn.Parameter(torch.zeros(3, hidden_size))

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        h, c = state
        i, f, g, o = self.gates(torch.cat([x, h], 1)).chunk(4, 1)
        i = torch.sigmoid(i + self.peepholes[0] * c)
        f = torch.sigmoid(f + self.peepholes[1] * c)
        c = f * c + i * torch.tanh(g)
        o = torch.sigmoid(o + self.peepholes[2] * c)
        return o * torch.tanh(c), c
