"""The loop over time around a user's own cell, as its author would write it: one for every execution.

It is written out as source text, because TorchScript compiles text, and in it a state has one type.
"""

import torch
from torch import nn

from .network import ReadGradient
from .own_cell import CellError, find_form, make_cell, trained
from .printed import HEAD, load_source
from .stacks import LoopStack

LOOP = """

class OwnLoop(nn.Module):
    def __init__(self, cell):
        super(OwnLoop, self).__init__()
        self.cell = cell

    def forward(self, xs: Tensor, mask: Optional[Tensor]) -> Tensor:
        inputs = xs.unbind(0)
        {begin}
        outputs: List[Tensor] = []
        for x in inputs:
            {step}
            outputs.append({output})
        return torch.stack(outputs)
"""


def loop_class(form):
    return load_source(HEAD + LOOP.format(begin=form.begin, step=form.step, output=form.output)).OwnLoop


class OwnStack(LoopStack):
    """One layer of a user's own cell."""

    def __init__(self, workload, exact):
        nn.Module.__init__(self)
        own, width, hidden = workload["own"], workload["input_width"], workload["hidden"]
        form = find_form(own, width, hidden)
        cell = make_cell(own, width, hidden)
        if exact:
            torch.set_default_dtype(torch.float64)  # now that it is made: for what a step makes
        self.layers = nn.ModuleList([nn.ModuleList([self._around(cell, form)])])
        self._weights = Weights(cell, workload["weights"])

    def _around(self, cell, form):
        return loop_class(form)(cell)

    def assign(self, layer, direction, *weights):
        for parameter, value in zip(self._weights.parameters, weights):
            parameter.data.copy_(value)

    def canonical(self, layer, direction, read):
        """A parameter that a step does not use has no gradient, which is zero."""
        reads_gradients = isinstance(read, ReadGradient)
        return [
            torch.zeros(one.shape) if reads_gradients and one.grad is None else read(one)
            for one in self._weights.parameters
        ]


class Weights(object):
    """A cell's own parameters: compiling puts another module in its place. TorchScript leaves such an object alone."""

    def __init__(self, cell, names):
        own = trained(cell)
        self.parameters = [own[name] for name in names]


class FusedOwnStack(OwnStack):
    """The same, by rnnfuse."""

    def _around(self, cell, form):
        return OwnFused(cell, form)

    @property
    def compilations(self):
        return self.layers[0][0].recurrent.compilations


class OwnFused(nn.Module):
    """The cell in rnnfuse.Recurrent."""

    def __init__(self, cell, form):
        super(OwnFused, self).__init__()
        from rnnfuse import Recurrent  # needs a newer PyTorch than the other rows

        self.recurrent = Recurrent(cell)
        self._begin = None if hasattr(cell, "initial_state") else begin_function(form)
        self._checked = False

    def forward(self, xs, mask):
        outputs, _ = self.recurrent(xs, None if self._begin is None else self._begin(xs))
        if not self._checked:
            self._checked = True
            self._require_a_plan()
        return outputs

    def _require_a_plan(self):
        """A step that cannot be taken apart runs as the plain loop, which has a row of its own."""
        told = self.recurrent.explain()
        if "runs as a plain loop" in told or "nothing is known" in told:
            raise CellError("rnnfuse cannot take this step apart; it {}".format(told.splitlines()[0]))


def begin_function(form):
    """`begin(xs)`: the state that the loop begins with."""
    names = {"torch": torch}
    exec("def begin(xs):\n        {}\n        return state\n".format(form.begin), names)
    return names["begin"]
