"""Cells as users write them, and cells made at random."""

import random

import torch
from torch import nn
from torch.nn import functional as F


class FineLstm(nn.Module):
    """One weight for each gate."""

    def __init__(self, width, hidden):
        super().__init__()
        self.hidden = hidden
        for gate in "ifgo":
            setattr(self, "w" + gate, nn.Parameter(torch.randn(width, hidden) / 3))
            setattr(self, "u" + gate, nn.Parameter(torch.randn(hidden, hidden) / 3))
            setattr(self, "b" + gate, nn.Parameter(torch.randn(hidden) / 3))

    def initial_state(self, x):
        return x.new_zeros(x.shape[0], self.hidden), x.new_zeros(x.shape[0], self.hidden)

    def gate(self, name, x, h):
        return x @ getattr(self, "w" + name) + h @ getattr(self, "u" + name) + getattr(self, "b" + name)

    def forward(self, x, state):
        h, c = state
        c = torch.sigmoid(self.gate("f", x, h)) * c + torch.sigmoid(self.gate("i", x, h)) * torch.tanh(
            self.gate("g", x, h)
        )
        return torch.sigmoid(self.gate("o", x, h)) * torch.tanh(c), c


class Peephole(FineLstm):
    def __init__(self, width, hidden):
        super().__init__(width, hidden)
        self.p = nn.Parameter(torch.randn(3, hidden) / 3)

    def forward(self, x, state):
        h, c = state
        i = torch.sigmoid(self.gate("i", x, h) + self.p[0] * c)
        f = torch.sigmoid(self.gate("f", x, h) + self.p[1] * c)
        c = f * c + i * torch.tanh(self.gate("g", x, h))
        return torch.sigmoid(self.gate("o", x, h) + self.p[2] * c) * torch.tanh(c), c


class PackedPeephole(nn.Module):
    """All gates in one tensor, all peepholes in another, which is cut: its gradient is put together end to end."""

    def __init__(self, width, hidden):
        super().__init__()
        self.hidden = hidden
        self.w, self.u = (nn.Parameter(torch.randn(size, 4 * hidden) / 3) for size in (width, hidden))
        self.b, self.p = (nn.Parameter(torch.randn(size) / 3) for size in (4 * hidden, 3 * hidden))

    initial_state = FineLstm.initial_state

    def forward(self, x, state):
        h, c = state
        i, f, g, o = (x @ self.w + h @ self.u + self.b).split(self.hidden, 1)
        at_i, at_f, at_o = self.p.split(self.hidden)
        c = torch.sigmoid(f + at_f * c) * c + torch.sigmoid(i + at_i * c) * torch.tanh(g)
        return torch.sigmoid(o + at_o * c) * torch.tanh(c), c


class OneState(nn.Module):
    """Both states in one tensor, of which a part is the output."""

    def __init__(self, width, hidden):
        super().__init__()
        self.gates, self.hidden = nn.Linear(width + hidden, 4 * hidden), hidden

    def initial_state(self, x):
        return x.new_zeros(x.shape[0], 2 * self.hidden)

    def forward(self, x, state):
        h, c = state.chunk(2, 1)
        i, f, g, o = self.gates(torch.cat([x, h], 1)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, torch.cat([h, c], 1)


class LayerNormLstm(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.wx, self.wh = nn.Linear(width, 4 * hidden, bias=False), nn.Linear(hidden, 4 * hidden, bias=False)
        self.nx, self.nh, self.nc = nn.LayerNorm(4 * hidden), nn.LayerNorm(4 * hidden), nn.LayerNorm(hidden)
        self.hidden = hidden

    initial_state = FineLstm.initial_state

    def forward(self, x, state):
        h, c = state
        i, f, g, o = (self.nx(self.wx(x)) + self.nh(self.wh(h))).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(self.nc(c)), c


class NormedRnn(nn.Module):
    """One norm, of a sum of products and a bias."""

    def __init__(self, width, hidden):
        super().__init__()
        self.w, self.u, self.norm = nn.Linear(width, hidden), nn.Linear(hidden, hidden), nn.LayerNorm(hidden)
        self.hidden = hidden

    def initial_state(self, x):
        return x.new_zeros(x.shape[0], self.hidden)

    def forward(self, x, h):
        return torch.tanh(self.norm(self.w(x) + self.u(h)))


class Dropping(nn.Module):
    """Dropout on the input and on the state, another mask at each step."""

    def __init__(self):
        super().__init__()
        self.step = nn.Linear(7, 4)

    def initial_state(self, x):
        return x.new_zeros(x.shape[0], 4)

    def forward(self, x, h):
        x, h = F.dropout(x, 0.5, self.training), F.dropout(h, 0.3, self.training)
        return torch.tanh(self.step(torch.cat([x, h], 1)))


class GruBefore(nn.Module):
    """Two products that depend on each other in a step; the state is a tensor."""

    def __init__(self, width, hidden):
        super().__init__()
        self.wx, self.ur, self.uh = (
            nn.Linear(width, 3 * hidden),
            nn.Linear(hidden, 2 * hidden),
            nn.Linear(hidden, hidden),
        )
        self.hidden = hidden

    def initial_state(self, x):
        return x.new_zeros(x.shape[0], self.hidden)

    def forward(self, x, h):
        xr, xz, xn = self.wx(x).chunk(3, 1)
        r, z = self.ur(h).chunk(2, 1)
        n = torch.tanh(xn + self.uh(torch.sigmoid(xr + r) * h))
        return torch.lerp(n, h, torch.sigmoid(xz + z))


class SLstm(nn.Module):
    """Exponential gates, a stabiliser and a normaliser; the state is a dict."""

    def __init__(self, width, hidden):
        super().__init__()
        self.wx, self.wh = nn.Linear(width, 4 * hidden), nn.Linear(hidden, 4 * hidden, bias=False)
        self.hidden = hidden

    def initial_state(self, x):
        return {name: x.new_zeros(x.shape[0], self.hidden) for name in "hcnm"}

    def forward(self, x, state):
        i, f, z, o = (self.wx(x) + self.wh(state["h"])).chunk(4, 1)
        lf = F.logsigmoid(f) + state["m"]
        m = torch.maximum(lf, i)
        c = torch.exp(lf - m) * state["c"] + torch.exp(i - m) * torch.tanh(z)
        n = torch.exp(lf - m) * state["n"] + torch.exp(i - m)
        return {"h": torch.sigmoid(o) * c / n.clamp(min=1.0), "c": c, "n": n, "m": m}


class OwnOutput(nn.Module):
    """Returns an output beside its state, of another width."""

    def __init__(self, width, hidden):
        super().__init__()
        self.step, self.head, self.hidden = nn.Linear(width + hidden, hidden), nn.Linear(hidden, 3), hidden

    initial_state = GruBefore.initial_state

    def forward(self, x, h):
        h = torch.tanh(self.step(torch.cat([x, h], 1)))
        return torch.softmax(self.head(h), 1), h


class Heads(nn.Module):
    """A state of three dimensions, and products in batches: a small fast-weight memory."""

    def __init__(self, width, hidden):
        super().__init__()
        self.keys, self.values, self.heads, self.size = nn.Linear(width, 2 * 3), nn.Linear(width, 2 * 3), 2, 3
        self.decay = nn.Parameter(torch.randn(2, 1, 1))

    def initial_state(self, x):
        return x.new_zeros(x.shape[0], self.heads, self.size, self.size)

    def forward(self, x, memory):
        k = self.keys(x).view(-1, self.heads, self.size)
        v = self.values(x).view(x.shape[0], self.heads, self.size)
        memory = torch.sigmoid(self.decay) * memory + k.unsqueeze(3) * v.unsqueeze(2)
        read = (memory * torch.softmax(k, 2).unsqueeze(3)).sum(2)
        return read.flatten(1), memory


class TwoProducts(nn.Module):
    """What the next cells have in common: a product of the input and one of the state."""

    def __init__(self, width, hidden):
        super().__init__()
        self.wx, self.wh, self.hidden = nn.Linear(width, hidden), nn.Linear(hidden, hidden), hidden

    initial_state = GruBefore.initial_state


class BatchMean(TwoProducts):
    """Every sequence sees the others: nothing of this may run over all steps at once."""

    def forward(self, x, h):
        y = self.wx(x)
        return torch.tanh(y - y.mean(0, keepdim=True) + self.wh(h) * h.amax(0) + h.flip(0))


class BatchSum(TwoProducts):
    """Adds up over the sequences of a step: that must not become a sum over all steps."""

    def forward(self, x, h):
        gram = self.wx(x).t() @ self.wx(x)
        return torch.tanh(self.wx(x) + self.wh(h) @ gram / 9 + x.sum(0)[0] * self.wx(x).sum(0) / 9 + x.sum() / 9)


class Counter(nn.Module):
    """A state without rows: a number that grows from step to step."""

    def __init__(self, width, hidden):
        super().__init__()
        self.step, self.hidden, self.scale = nn.Linear(width + hidden, hidden), hidden, nn.Parameter(torch.ones(()))

    def initial_state(self, x):
        return x.new_zeros(x.shape[0], self.hidden), x.new_zeros(())

    def forward(self, x, state):
        h, count = state
        return torch.tanh(self.step(torch.cat([x, h], 1)) * torch.exp(-self.scale * count / 9)), count + 1


class InPlace(TwoProducts):
    """Changes what it has just made in place."""

    def forward(self, x, h):
        y = self.wx(x)
        y += self.wh(h)
        y.mul_(0.9).clamp_(-2, 2)
        return y.tanh_()


class Attending(nn.Module):
    """Attention over a memory that every step gets."""

    def __init__(self, width, hidden):
        super().__init__()
        self.step, self.query, self.hidden = nn.Linear(width + hidden + 4, hidden), nn.Linear(hidden, 4), hidden

    initial_state = GruBefore.initial_state

    def forward(self, x, h, memory):
        weights = torch.softmax(torch.einsum("bd,bnd->bn", self.query(h), memory), 1)
        read = torch.einsum("bn,bnd->bd", weights, memory)
        return torch.tanh(self.step(torch.cat([x, h, read], 1)))


class Tied(nn.Module):
    """One parameter under two names, a buffer, and a weight that is normalised in the step."""

    def __init__(self, width, hidden):
        super().__init__()
        self.a = nn.Linear(hidden, hidden)
        self.b = nn.Linear(hidden, hidden)
        self.b.weight = self.a.weight
        self.v, self.g = nn.Parameter(torch.randn(width, hidden)), nn.Parameter(torch.ones(hidden))
        self.register_buffer("mask", (torch.arange(hidden) % 2).float())
        self.hidden = hidden

    initial_state = GruBefore.initial_state

    def forward(self, x, h):
        weight = self.g * self.v / self.v.norm(dim=0)
        return torch.tanh(x @ weight + self.a(h) * self.mask.to(h.dtype) + self.b(torch.relu(h)))


CELLS = [
    FineLstm,
    Peephole,
    PackedPeephole,
    OneState,
    LayerNormLstm,
    GruBefore,
    SLstm,
    OwnOutput,
    Heads,
    BatchMean,
    BatchSum,
    Counter,
    InPlace,
    Tied,
]


def tame(cell):
    """The same cell with weights that amplify no rounding error from step to step."""
    with torch.no_grad():
        for parameter in cell.parameters():
            if parameter.dim() == 2:
                parameter.mul_(1.5 / len(parameter) ** 0.5)
    return cell


class Random(nn.Module):
    """A cell made at random from the operators of plain PyTorch."""

    UNARY = (
        torch.tanh, torch.sigmoid, torch.sin, F.silu, F.gelu, F.softplus, lambda v: torch.relu(v) + 0.1 * v,
        lambda v: v.abs() + 0.1,
        lambda v: torch.softmax(v, 1), lambda v: v - v.mean(1, keepdim=True), lambda v: F.layer_norm(v, v.shape[1:]),
        lambda v: torch.exp(-v * v), lambda v: v.clamp(-1, 1), lambda v: v.flip(1), lambda v: torch.cumsum(v, 1) / 5,
        lambda v: v.roll(1, 1), lambda v: v.view(v.shape[0], 2, -1).transpose(1, 2).reshape(v.shape),
        lambda v: F.pad(v[:, 1:], (1, 0)), lambda v: torch.where(v > 0, v, 0.3 * v),
        lambda v: v.sum(1, keepdim=True).expand_as(v) / 4,
    )  # fmt: skip
    BINARY = (
        torch.add, torch.mul, torch.sub, torch.maximum, torch.minimum, lambda a, b: a / (1 + b * b),
        lambda a, b: torch.lerp(a, b, 0.3), lambda a, b: torch.cat([a[:, ::2], b[:, 1::2]], 1)[:, : a.shape[1]],
        lambda a, b: torch.sigmoid(a) * b, lambda a, b: torch.addcmul(a, b, b, value=0.5),
    )  # fmt: skip

    def __init__(self, seed, width, hidden):
        super().__init__()
        draw = random.Random(seed)
        self.hidden, self.states = hidden, draw.randint(1, 3)
        self.inputs = nn.ModuleList(
            nn.Linear(width, hidden, bias=draw.random() < 0.5) for _ in range(draw.randint(1, 3))
        )
        self.weights = nn.ParameterList(
            nn.Parameter(torch.randn(hidden, hidden) / 4) for _ in range(draw.randint(1, 4))
        )
        self.scales = nn.ParameterList(nn.Parameter(torch.randn(hidden) / 2) for _ in range(2))
        self.program = []
        count = len(self.inputs) + self.states
        for _ in range(draw.randint(3, 12)):
            kind = draw.choice(["unary", "binary", "binary", "product", "scale"])
            if kind == "unary":
                step = (draw.choice(self.UNARY), draw.randrange(count))
            elif kind == "binary":
                step = (draw.choice(self.BINARY), draw.randrange(count), draw.randrange(count))
            elif kind == "product":
                step = (draw.randrange(len(self.weights)), draw.randrange(count))
            else:
                step = (draw.randrange(2), draw.randrange(count))
            self.program.append((kind, *step))
            count += 1
        self.results = [draw.randrange(max(0, count - 6), count) for _ in range(self.states)]

    def initial_state(self, x):
        return tuple(x.new_zeros(x.shape[0], self.hidden) for _ in range(self.states))

    def forward(self, x, state):
        values = [one(x) for one in self.inputs] + list(state)
        for kind, what, *of in self.program:
            given = [values[k] for k in of]
            if kind == "product":
                values.append(given[0] @ self.weights[what])
            elif kind == "scale":
                values.append(given[0] * self.scales[what])
            else:
                values.append(what(*given))
        return tuple(torch.tanh(values[k]) for k in self.results)
