"""The recurrent stack, built once per granularity: loops around a cell, or torch.nn.LSTM.

Every stack is called as `stack(xs, lengths)` with `xs [steps, batch, width]` and returns
`[steps, batch, hidden × directions]`; steps beyond a sequence's length are zero.
"""

from typing import List, Optional

import torch
from torch import Tensor, nn

from rnnbench_worker.sequences import within

from .cells import GRANULARITIES, assign_transposed, read_transposed
from .compat import run_packed


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
                # Outside its sequence the state stays; the way back so starts at each one's own end.
                here = mask[t]
                h = torch.where(here, new_h, h)
                c = torch.where(here, new_c, c)
                outputs.append(torch.where(here, h, torch.zeros_like(h)))
        if self.reverse:
            outputs.reverse()  # a slice with a negative step is beyond older TorchScript
        return torch.stack(outputs)


class LoopStack(nn.Module):
    """The seeds' order: outer loop over depth, inner loop over time."""

    def __init__(self, workload, granularity, direction=Direction):
        super(LoopStack, self).__init__()
        hidden = workload["hidden"]
        layers = []
        width = workload["input_width"]
        for _ in range(workload["layers"]):
            layers.append(
                nn.ModuleList(
                    [
                        direction(GRANULARITIES[granularity](width, hidden), hidden, name == "bwd")
                        for name in workload["directions"]
                    ]
                )
            )
            width = hidden * len(workload["directions"])
        self.layers = nn.ModuleList(layers)

    def forward(self, xs: Tensor, lengths: Optional[Tensor]) -> Tensor:
        mask: Optional[Tensor] = None
        if lengths is not None:
            mask = within(torch.arange(xs.size(0), device=lengths.device), lengths)
        for layer in self.layers:
            outputs: List[Tensor] = []
            for direction in layer:
                outputs.append(direction(xs, mask))
            xs = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=2)
        return xs

    def assign(self, layer, direction, w, u, b):
        self.layers[layer][direction].cell.assign(w, u, b)

    def canonical(self, layer, direction, read):
        return self.layers[layer][direction].cell.canonical(read)


class VendorStack(nn.Module):
    """torch.nn.LSTM: all layers, steps and directions in one call (cuDNN, oneDNN)."""

    def __init__(self, workload):
        super(VendorStack, self).__init__()
        self.lstm = nn.LSTM(
            workload["input_width"],
            workload["hidden"],
            num_layers=workload["layers"],
            bidirectional=len(workload["directions"]) == 2,
        )

    def forward(self, xs: Tensor, lengths: Optional[Tensor]) -> Tensor:
        if lengths is None:
            return self.lstm(xs)[0]
        return run_packed(self.lstm, xs, lengths)

    def _own(self, layer, direction):
        suffix = "_l{}{}".format(layer, "_reverse" if direction else "")
        return [getattr(self.lstm, name + suffix) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]

    def assign(self, layer, direction, w, u, b):
        assign_transposed(self._own(layer, direction), w, u, b)

    def canonical(self, layer, direction, read):
        return read_transposed(self._own(layer, direction), read)
