"""Cells of rnnbench_cells for TorchScript, which compiles source text: a step is printed as one would write it in
PyTorch, and so is the loop over time around it, since in TorchScript a state has one type.
"""

import importlib.util
import os
import sys
import tempfile
from functools import partial

import rnnbench_cells

HEAD = """
from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn
"""

CELL = """

class PrintedCell(nn.Module):
    def __init__(self):
        super(PrintedCell, self).__init__()
        {make}

    def forward(self, x: Tensor, state: Tuple[{types}]) -> Tuple[{types}]:
        {body}
        return ({result})
"""

DIRECTION = """

class PrintedDirection(nn.Module):
    def __init__(self, cell, hidden: int, reverse: bool):
        super(PrintedDirection, self).__init__()
        self.cell = cell
        self.hidden = hidden
        self.reverse = reverse

    def forward(self, xs: Tensor, mask: Optional[Tensor]) -> Tensor:
        steps = xs.size(0)
        zeros = torch.zeros(xs.size(1), self.hidden, dtype=xs.dtype, device=xs.device)
        state = ({zeros})
        inputs = xs.unbind(0)
        outputs: List[Tensor] = []
        for step in range(steps):
            t = steps - 1 - step if self.reverse else step
            new = self.cell(inputs[t], state)
            if mask is None:
                state = new
                outputs.append(new[0])
            else:
                here = mask[t]
                state = ({kept})
                outputs.append(torch.where(here, state[0], zeros))
        if self.reverse:
            outputs.reverse()
        return torch.stack(outputs)
"""


def load_source(text):
    """A module from source text, in a file: TorchScript reads it there. torch.compile looks for it by its name."""
    folder = tempfile.mkdtemp(prefix="printed_")
    name = os.path.basename(folder)
    path = os.path.join(folder, name + ".py")
    with open(path, "w") as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def direction_class(states):
    """A loop over time around a cell with so many states."""
    kept = ["torch.where(here, new[{0}], state[{0}])".format(k) for k in range(states)]
    return load_source(HEAD + DIRECTION.format(zeros="zeros, " * states, kept=several(kept))).PrintedDirection


def make_printed_cell(name, width, hidden):
    """A cell as `AnyCell`, with its step printed."""
    cell = rnnbench_cells.find(name)
    shapes = cell.parameters(width, hidden)
    printer = Printer()
    state = {one: Symbol(printer, "state[{}]".format(k)) for k, one in enumerate(cell.STATES)}
    weights = {part: Symbol(printer, "self." + part) for part in shapes}
    new = cell.step(printer, weights, Symbol(printer, "x"), state)
    make = ["self.{} = nn.Parameter(torch.empty{})".format(part, tuple(shape)) for part, shape in shapes.items()]
    text = CELL.format(
        make="\n        ".join(make),
        types=", ".join(["Tensor"] * len(cell.STATES)),
        body="\n        ".join(printer.lines),
        result=several([str(new[one]) for one in cell.STATES]),
    )
    made = load_source(HEAD + text).PrintedCell()
    made.assign = partial(assign, made, list(shapes))
    made.canonical = partial(canonical, made, list(shapes))
    return made


def assign(cell, names, *arrays):
    for name, array in zip(names, arrays):
        getattr(cell, name).data.copy_(array)


def canonical(cell, names, read):
    return [read(getattr(cell, name)) for name in names]


def several(texts):
    return "".join(text + ", " for text in texts)


class Symbol(object):
    """A value of a step that is being printed: its name, and the operators of Python."""

    def __init__(self, printer, text):
        self._printer = printer
        self._text = text

    def __str__(self):
        return self._text

    def _print(self, template, *values):
        return self._printer.add(template.format(*values))

    def __add__(self, other):
        return self._print("{} + {}", self, other)

    def __radd__(self, other):
        return self._print("{} + {}", other, self)

    def __sub__(self, other):
        return self._print("{} - {}", self, other)

    def __rsub__(self, other):
        return self._print("{} - {}", other, self)

    def __mul__(self, other):
        return self._print("{} * {}", self, other)

    def __rmul__(self, other):
        return self._print("{} * {}", other, self)

    def __truediv__(self, other):
        return self._print("{} / {}", self, other)

    def __rtruediv__(self, other):
        return self._print("{} / {}", other, self)

    def __neg__(self):
        return self._print("-{}", self)


class Printer(object):
    """The vocabulary of rnnbench_cells, one statement for each operator."""

    def __init__(self):
        self.lines = []

    def add(self, expression):
        name = "v{}".format(len(self.lines))
        self.lines.append("{} = {}".format(name, expression))
        return Symbol(self, name)

    def _call(self, function, *arguments):
        return self.add("{}({})".format(function, ", ".join(str(one) for one in arguments)))

    def matmul(self, a, b):
        return self._call("torch.matmul", a, b)

    def sigmoid(self, a):
        return self._call("torch.sigmoid", a)

    def tanh(self, a):
        return self._call("torch.tanh", a)

    def relu(self, a):
        return self._call("torch.relu", a)

    def exp(self, a):
        return self._call("torch.exp", a)

    def log(self, a):
        return self._call("torch.log", a)

    def softplus(self, a):
        return self._call("nn.functional.softplus", a)

    def constant(self, a):
        return self.add("{}.detach()".format(a))

    def maximum(self, a, b):
        return self.add(("torch.clamp({}, min={})" if isinstance(b, float) else "torch.maximum({}, {})").format(a, b))

    def minimum(self, a, b):
        return self.add(("torch.clamp({}, max={})" if isinstance(b, float) else "torch.minimum({}, {})").format(a, b))

    def split(self, a, count):
        names = ["v{}_{}".format(len(self.lines), k) for k in range(count)]
        self.lines.append("{} = torch.chunk({}, {}, dim=-1)".format(", ".join(names), a, count))
        return [Symbol(self, name) for name in names]

    def concat(self, pieces):
        return self.add("torch.cat([{}], dim=-1)".format(", ".join(str(one) for one in pieces)))

    def layer_norm(self, a, gain, bias):
        shift = None if isinstance(bias, float) else bias
        return self._call(
            "nn.functional.layer_norm", a, "[{}.size(-1)]".format(a), gain, shift, repr(rnnbench_cells.EPSILON)
        )
