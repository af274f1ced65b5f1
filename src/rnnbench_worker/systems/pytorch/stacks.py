"""The recurrent stack, built once for each granularity: loops around a cell, or a layer of torch.nn.

A stack is called as `stack(xs, lengths)` with `xs [steps, batch, width]` and returns
`[steps, batch, hidden × directions]`; steps after the end of a sequence are zero. A cell computes one time step,
called as `h, c = cell(x, (h, c))`.

Both know their own layout of the canonical `w [in,4H]`, `u [H,4H]`, `b [4H]`: `assign` takes canonical arrays,
`canonical` returns them from what `read` reads of a parameter (its value or its gradient).
"""

from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn

import rnnbench_cells
from rnnbench_worker.canonical import step_mask

from .any_cell import AnyCell, AnyDirection
from .compat import run_packed
from .printed import direction_class, make_printed_cell

# --- stacks -------------------------------------------------------------------------------------------


class Direction(nn.Module):
    """One layer in one direction: a loop over time around any cell."""

    def __init__(self, cell, hidden: int, reverse: bool):
        super(Direction, self).__init__()
        self.cell = cell
        self.hidden = hidden
        self.reverse = reverse

    def forward(self, xs: Tensor, mask: Optional[Tensor]) -> Tensor:
        steps = xs.size(0)
        h = torch.zeros(xs.size(1), self.hidden, dtype=xs.dtype, device=xs.device)
        c = torch.zeros(xs.size(1), self.hidden, dtype=xs.dtype, device=xs.device)
        inputs = xs.unbind(0)
        outputs: List[Tensor] = []
        for step in range(steps):
            t = steps - 1 - step if self.reverse else step
            new_h, new_c = self.cell(inputs[t], (h, c))
            if mask is None:
                h, c = new_h, new_c
                outputs.append(h)
            else:
                # Outside a sequence the state is kept, so that the backward direction starts at the sequence's own end.
                here = mask[t]
                h = torch.where(here, new_h, h)
                c = torch.where(here, new_c, c)
                outputs.append(torch.where(here, h, torch.zeros_like(h)))
        if self.reverse:
            outputs.reverse()  # older versions of TorchScript have no slices with a negative step
        return torch.stack(outputs)


class LoopStack(nn.Module):
    """Layers of any cell. The outer loop runs over depth, the inner one over time."""

    def __init__(self, workload, granularity, direction=Direction, printed=False):
        """`printed`: other cells than the LSTM, and their loop, as source text for TorchScript."""
        super(LoopStack, self).__init__()
        hidden = workload["hidden"]
        layers = []
        width = workload["input_width"]
        if workload["cell"] != "lstm":
            states = len(rnnbench_cells.find(workload["cell"]).STATES)
            direction = direction_class(states) if printed else AnyDirection
        for _ in range(workload["layers"]):
            layers.append(
                nn.ModuleList(
                    [
                        direction(make_cell(workload, granularity, width, printed), hidden, name == "bwd")
                        for name in workload["directions"]
                    ]
                )
            )
            width = hidden * len(workload["directions"])
        self.layers = nn.ModuleList(layers)

    def forward(self, xs: Tensor, lengths: Optional[Tensor]) -> Tensor:
        mask: Optional[Tensor] = None
        if lengths is not None:
            mask = step_mask(torch.arange(xs.size(0), device=lengths.device), lengths)
        for layer in self.layers:
            outputs: List[Tensor] = []
            for direction in layer:
                outputs.append(direction(xs, mask))
            xs = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=2)
        return xs

    def assign(self, layer, direction, *weights):
        self.layers[layer][direction].cell.assign(*weights)

    def canonical(self, layer, direction, read):
        return self.layers[layer][direction].cell.canonical(read)


class VendorStack(nn.Module):
    """torch.nn.LSTM, GRU or RNN: all layers, steps and directions in one call (cuDNN, oneDNN)."""

    def __init__(self, workload):
        super(VendorStack, self).__init__()
        self.kind = workload["cell"]
        self.rnn = VENDOR_STACKS[self.kind](
            workload["input_width"],
            workload["hidden"],
            num_layers=workload["layers"],
            bidirectional=len(workload["directions"]) == 2,
        )

    def forward(self, xs: Tensor, lengths: Optional[Tensor]) -> Tensor:
        if lengths is None:
            return self.rnn(xs)[0]
        return run_packed(self.rnn, xs, lengths)

    def _own(self, layer, direction):
        suffix = "_l{}{}".format(layer, "_reverse" if direction else "")
        return [getattr(self.rnn, name + suffix) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]

    def assign(self, layer, direction, *weights):
        assign_transposed(self.kind, self._own(layer, direction), weights)

    def canonical(self, layer, direction, read):
        return read_transposed(self.kind, self._own(layer, direction), read)


class ScanDirection(nn.Module):
    """A `Direction` by torch's own scan operator, so that the loop stays a loop in the compiled program."""

    def __init__(self, cell, hidden, reverse):
        super(ScanDirection, self).__init__()
        self.cell = cell
        self.hidden = hidden
        self.reverse = reverse

    def forward(self, xs, mask):
        from torch._higher_order_ops.scan import scan  # older versions have none

        zeros = torch.zeros(xs.size(1), self.hidden, dtype=xs.dtype, device=xs.device)

        # What the backward pass keeps of a step must not be the carried state itself: inductor rejects that
        # ("scan might be aliasing the input or the output"), so the state is copied on input and output.
        def step(state, x):
            h, c = self.cell(x, (state[0].clone(), state[1].clone()))
            return (h.clone(), c.clone()), h.clone()

        def masked_step(state, x_and_mask):
            x, here = x_and_mask
            old_h, old_c = state[0].clone(), state[1].clone()
            new_h, new_c = self.cell(x, (old_h, old_c))
            h = torch.where(here, new_h, old_h)
            c = torch.where(here, new_c, old_c)
            return (h.clone(), c.clone()), torch.where(here, h, torch.zeros_like(h))

        start = (zeros, zeros.clone())
        if mask is None:
            _, outputs = scan(step, start, xs, dim=0, reverse=self.reverse)
        else:
            _, outputs = scan(masked_step, start, (xs, mask), dim=0, reverse=self.reverse)
        return outputs


class FusedStack(nn.Module):
    """Layers of any cell by rnnfuse: a step is taken apart, and only what must be is left in the loop."""

    def __init__(self, workload, granularity):
        super(FusedStack, self).__init__()
        from rnnfuse import Stack  # needs a newer PyTorch than the other rows

        hidden, directions = workload["hidden"], len(workload["directions"])
        self.hidden, self.states = hidden, len(rnnbench_cells.find(workload["cell"]).STATES)
        widths = [workload["input_width"]] + [hidden * directions] * (workload["layers"] - 1)
        cells = [[make_cell(workload, granularity, width) for _ in range(directions)] for width in widths]
        cells = cells if directions == 2 else [cell for (cell,) in cells]
        self.layers = Stack(cells, bidirectional=directions == 2)

    def forward(self, xs, lengths):
        zeros = torch.zeros(xs.size(1), self.hidden, dtype=xs.dtype, device=xs.device)
        state = [(zeros,) * self.states] * sum(len(layer) for layer in self.layers.layers)
        return self.layers(xs, state, lengths)[0]

    def assign(self, layer, direction, *weights):
        self.layers.layers[layer][direction].cell.assign(*weights)

    def canonical(self, layer, direction, read):
        return self.layers.layers[layer][direction].cell.canonical(read)

    @property
    def how_it_ran(self):
        lines = [line.strip() for line in self.layers.explain().splitlines()]
        return "; ".join(sorted({line for line in lines if "one kernel" in line or "plain loop" in line}))

    @property
    def compilations(self):
        return sum(direction.compilations for layer in self.layers.layers for direction in layer)


# --- cells --------------------------------------------------------------------------------------------


class FineCell(nn.Module):
    """One weight per gate: eight products per step, every operator a primitive."""

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
    """The four gates in one matrix: two products per step, every operator a primitive."""

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
    """torch.nn.LSTMCell: one fused operator per step, transposed weights, two biases."""

    def assign(self, w, u, b):
        assign_transposed("lstm", (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh), (w, u, b))

    def canonical(self, read):
        return read_transposed("lstm", (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh), read)


def assign_transposed(kind, own, weights):
    """To torch's own layout: [gates,in], [gates,H] and two biases, the second of which starts at zero.

    A GRU's new state has a bias in each of them.
    """
    w, u, b = weights[:3]
    first, second = b, torch.zeros_like(b)
    if kind == "gru":
        first, second = torch.cat([b, weights[3]]), torch.cat([second, weights[4]])
    for parameter, value in zip(own, (w.t(), u.t(), first, second)):
        parameter.data.copy_(value)


def read_transposed(kind, own, read):
    """From torch's own layout. Two biases that are only ever added: `read.join` makes one of them."""
    w, u, first, second = [read(one) for one in own]
    if kind != "gru":
        return [w.t(), u.t(), read.join(first, second)]
    gates = len(first) // 3 * 2
    return [w.t(), u.t(), read.join(first[:gates], second[:gates]), first[gates:], second[gates:]]


CELLS = {"fine": FineCell, "packed": PackedCell, "cell": FusedCell}
VENDOR_STACKS = {"lstm": nn.LSTM, "gru": nn.GRU, "elman": nn.RNN}


class VendorCell(nn.Module):
    """torch.nn.GRUCell or RNNCell, with its state as a tuple."""

    states = 1
    KINDS = {"gru": nn.GRUCell, "elman": nn.RNNCell}

    def __init__(self, kind, width, hidden):
        super(VendorCell, self).__init__()
        self.kind = kind
        self.inner = self.KINDS[kind](width, hidden)

    def forward(self, x: Tensor, state: Tuple[Tensor]) -> Tuple[Tensor]:
        return (self.inner(x, state[0]),)

    def _own(self):
        return self.inner.weight_ih, self.inner.weight_hh, self.inner.bias_ih, self.inner.bias_hh

    def assign(self, *weights):
        assign_transposed(self.kind, self._own(), weights)

    def canonical(self, read):
        return read_transposed(self.kind, self._own(), read)


def make_cell(workload, granularity, width, printed=False):
    """The LSTM is written out in three granularities; every other cell is as its file says."""
    if workload["cell"] == "lstm":
        return CELLS[granularity](width, workload["hidden"])
    kind = VendorCell if granularity == "cell" else make_printed_cell if printed else AnyCell
    return kind(workload["cell"], width, workload["hidden"])
