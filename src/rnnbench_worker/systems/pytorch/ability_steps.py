"""The steps that show abilities, and a loop over time for each kind of execution.

A step is called as `h, c = step(x, flag, (h, c), extra)`. Most stand around the LSTM of the row's granularity and
change what it is given; two are cells of their own. They are written so that TorchScript takes them, too.
"""

from typing import List, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import rnnbench_cells

from .stacks import PackedCell

# --- steps --------------------------------------------------------------------------------------------


class Around(nn.Module):
    """A step that is the cell itself."""

    def __init__(self, cell):
        super(Around, self).__init__()
        self.cell = cell

    def forward(self, x: Tensor, flag: Tensor, state: Tuple[Tensor, Tensor], extra: Tensor) -> Tuple[Tensor, Tensor]:
        return self.cell(x, state)


class Dropped(Around):
    def forward(self, x: Tensor, flag: Tensor, state: Tuple[Tensor, Tensor], extra: Tensor) -> Tuple[Tensor, Tensor]:
        h, c = state
        return self.cell(x, (h * extra, c))


class Within(Around):
    """Outside a sequence the state is kept."""

    def forward(self, x: Tensor, flag: Tensor, state: Tuple[Tensor, Tensor], extra: Tensor) -> Tuple[Tensor, Tensor]:
        h, c = state
        new_h, new_c = self.cell(x, state)
        return torch.where(flag > 0, new_h, h), torch.where(flag > 0, new_c, c)


class Reset(Around):
    def forward(self, x: Tensor, flag: Tensor, state: Tuple[Tensor, Tensor], extra: Tensor) -> Tuple[Tensor, Tensor]:
        h, c = state
        kept = 1.0 - flag
        return self.cell(x, (h * kept, c * kept))


class FedBack(Around):
    """The output of the last step, through a head, is added to the input."""

    def forward(self, x: Tensor, flag: Tensor, state: Tuple[Tensor, Tensor], extra: Tensor) -> Tuple[Tensor, Tensor]:
        return self.cell(x + torch.matmul(state[0], self.head), state)


class Attending(Around):
    """What is read of the memory by the last output goes into the input."""

    def forward(self, x: Tensor, flag: Tensor, state: Tuple[Tensor, Tensor], extra: Tensor) -> Tuple[Tensor, Tensor]:
        scores = torch.bmm(extra, state[0].unsqueeze(2))
        read = torch.bmm(torch.softmax(scores, dim=1).transpose(1, 2), extra).squeeze(1)
        return self.cell(torch.cat([x, read], dim=1), state)


AROUND = {
    "recurrent-dropout": Dropped,
    "variable-lengths": Within,
    "reset": Reset,
    "feedback": FedBack,
    "attention": Attending,
}


class PeepholeCell(PackedCell):
    def __init__(self, width, hidden):
        super(PeepholeCell, self).__init__(width, hidden)
        self.p = nn.Parameter(torch.empty(3 * hidden))

    def forward(self, x: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
        h, c = state
        gates = torch.matmul(x, self.w) + torch.matmul(h, self.u) + self.b
        i, f, g, o = torch.chunk(gates, 4, dim=1)
        p_i, p_f, p_o = torch.chunk(self.p, 3, dim=0)
        new_c = torch.sigmoid(f + p_f * c) * c + torch.sigmoid(i + p_i * c) * torch.tanh(g)
        return torch.sigmoid(o + p_o * new_c) * torch.tanh(new_c), new_c


class NormalisedCell(PackedCell):
    def __init__(self, width, hidden):
        super(NormalisedCell, self).__init__(width, hidden)
        self.gates, self.hidden, self.epsilon = 4 * hidden, hidden, rnnbench_cells.EPSILON
        self.gain_x, self.gain_h = nn.Parameter(torch.empty(4 * hidden)), nn.Parameter(torch.empty(4 * hidden))
        self.gain_c, self.b_c = nn.Parameter(torch.empty(hidden)), nn.Parameter(torch.empty(hidden))

    def forward(self, x: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
        h, c = state
        from_x = F.layer_norm(torch.matmul(x, self.w), [self.gates], self.gain_x, self.b, self.epsilon)
        from_h = F.layer_norm(torch.matmul(h, self.u), [self.gates], self.gain_h, None, self.epsilon)
        i, f, g, o = torch.chunk(from_x + from_h, 4, dim=1)
        new_c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        shown = F.layer_norm(new_c, [self.hidden], self.gain_c, self.b_c, self.epsilon)
        return torch.sigmoid(o) * torch.tanh(shown), new_c


OWN = {"own-cell": PeepholeCell, "normalisation": NormalisedCell}


# --- loops --------------------------------------------------------------------------------------------


class Loop(nn.Module):
    """All (h, c) of a loop over time in Python, which TorchScript also takes."""

    def __init__(self, cell, hidden: int):
        super(Loop, self).__init__()
        self.cell = cell
        self.hidden = hidden

    def forward(self, xs: Tensor, flags: Tensor, extra: Tensor) -> Tuple[Tensor, Tensor]:
        h = torch.zeros(xs.size(1), self.hidden, dtype=xs.dtype, device=xs.device)
        c = torch.zeros(xs.size(1), self.hidden, dtype=xs.dtype, device=xs.device)
        hs: List[Tensor] = []
        cs: List[Tensor] = []
        for t in range(xs.size(0)):
            h, c = self.cell(xs[t], flags[t], (h, c), extra)
            hs.append(h)
            cs.append(c)
        return torch.stack(hs), torch.stack(cs)


class ScanLoop(Loop):
    """By torch's scan operator; the state is copied for the same reason as in `stacks.ScanDirection`."""

    def forward(self, xs, flags, extra):
        from torch._higher_order_ops.scan import scan

        zeros = torch.zeros(xs.size(1), self.hidden, dtype=xs.dtype, device=xs.device)

        def step(state, slices):
            h, c = self.cell(slices[0], slices[1], (state[0].clone(), state[1].clone()), extra)
            return (h.clone(), c.clone()), (h.clone(), c.clone())

        return scan(step, (zeros, zeros.clone()), (xs, flags), dim=0)[1]


class Joined(nn.Module):
    """A cell as rnnfuse calls it: input and flag are one tensor."""

    def __init__(self, step):
        super(Joined, self).__init__()
        self.step = step

    def forward(self, x, state, extra):
        return self.step(x[:, :-1], x[:, -1:], state, extra)


class FusedLoop(nn.Module):
    """By rnnfuse, which returns all states."""

    def __init__(self, cell, hidden):
        super(FusedLoop, self).__init__()
        from rnnfuse import Recurrent

        self.layer = Recurrent(Joined(cell))
        self.hidden = hidden

    def forward(self, xs, flags, extra):
        zeros = torch.zeros(xs.size(1), self.hidden, dtype=xs.dtype, device=xs.device)
        _, _, states = self.layer(torch.cat([xs, flags], dim=2), (zeros, zeros), states=True, extra=extra)
        return states


LOOPS = {"compile-scan": ScanLoop, "rnnfuse": FusedLoop}
