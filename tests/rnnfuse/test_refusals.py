"""Never wrong, never silent: a changed step is seen, what cannot be taken apart is a loop, wrong uses are named."""

import copy
import warnings

import pytest
import torch
from cells import GruBefore, OwnOutput
from torch import nn

import rnnfuse


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Scaled(GruBefore):
    scale = 1.0

    def forward(self, x, h):
        return super().forward(x * self.scale, h)


def test_an_attribute_that_changes_changes_the_result():
    cell = Scaled(3, 4)
    cell.scale = 2.0
    layer = rnnfuse.Recurrent(cell, compile=False)
    xs = torch.randn(6, 5, 3)
    before = layer(xs)[0]
    cell.scale = 3.0
    after = layer(xs)[0]
    assert not torch.allclose(before, after)
    assert torch.allclose(after[0], cell(xs[0], cell.initial_state(xs[0])))


def test_hooks_run_at_every_step():
    layer = rnnfuse.Recurrent(GruBefore(3, 4), compile=False)
    seen = []
    layer.cell.uh.register_forward_hook(lambda module, given, found: seen.append(1))
    layer(torch.randn(6, 5, 3))
    assert len(seen) == 6


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(3, 4)

    def initial_state(self, x):
        return x.new_zeros(x.shape[0], 4)

    def forward(self, x, h):
        if h.sum() > 1:
            h = h / 2
        return torch.tanh(self.step(x) + h)


def test_a_branch_on_data_runs_as_a_loop_with_one_warning_that_names_the_line():
    layer = rnnfuse.Recurrent(Branching())
    with pytest.warns(RuntimeWarning, match=r"runs as a plain loop.*if h.sum\(\) > 1:"):
        ys, _ = layer(torch.randn(6, 5, 3))
    assert ys.shape == (6, 5, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(torch.randn(6, 5, 3))
    assert "runs as a plain loop" in layer.explain()


class Foreign(nn.Module):
    """Uses a parameter that is not its own."""

    def __init__(self):
        super().__init__()
        self.others = [nn.Parameter(torch.randn(3, 4))]

    def forward(self, x, h):
        return torch.tanh(x @ self.others[0] + h)


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x, h):
        return torch.tanh(self.norm(x) + h)


class Random(nn.Module):
    """Looks at how many sequences there are."""

    def forward(self, x, h):
        return torch.tanh(x * (1 / x.shape[0] ** 0.5) + h)


@pytest.mark.parametrize("cell", [Foreign(), Remembering(), Random()])
def test_what_cannot_be_taken_apart_runs_as_a_loop(cell):
    xs = torch.randn(6, 5, 3)
    state = torch.zeros(5, 4 if isinstance(cell, Foreign) else 3)
    other = copy.deepcopy(cell)
    with pytest.warns(RuntimeWarning, match="runs as a plain loop"):
        ys, _ = rnnfuse.Recurrent(cell)(xs, state)
    h = state
    for t in range(6):
        h = other(xs[t], h)
    assert torch.allclose(ys[-1], h)


def test_a_first_call_may_be_checked(monkeypatch):
    layer = rnnfuse.Recurrent(GruBefore(3, 4), check=True, compile=False)
    layer(torch.randn(6, 5, 3))
    layer = rnnfuse.Recurrent(GruBefore(3, 4), check=True, compile=False)
    monkeypatch.setattr("rnnfuse.recurrent.run_loop", lambda *given: (torch.ones(6, 5, 4), [torch.ones(5, 4)], []))
    with pytest.raises(RuntimeError, match="differ from those of the plain loop"):
        layer(torch.randn(6, 5, 3))


# --- wrong uses ---


class Shapeless(nn.Module):
    def forward(self, x, h):
        return x, h, x


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: rnnfuse.Recurrent(lambda x, h: h), "must be a torch.nn.Module"),
        (lambda: rnnfuse.Recurrent(nn.Linear(3, 3))(torch.randn(6, 5, 3)), "does not say how it begins"),
        (lambda: rnnfuse.Recurrent(GruBefore(3, 4))(torch.randn(0, 5, 3)), "at least one step"),
        (lambda: rnnfuse.Recurrent(GruBefore(3, 4))(torch.randn(5)), r"must be a tensor \[steps, batch"),
        (lambda: rnnfuse.Recurrent(GruBefore(3, 4))(torch.randn(6, 5, 3), lengths=torch.ones(4)), "lengths must have"),
        (lambda: rnnfuse.Recurrent(GruBefore(3, 4))(torch.randn(6, 5, 3), state=[1, 2]), "must consist of tensors"),
        (lambda: rnnfuse.Stack([]), "a cell for each layer"),
        (
            lambda: rnnfuse.Stack([GruBefore(3, 4)])(torch.randn(6, 5, 3), state=[1, 2]),
            "1 layers and directions, and 2",
        ),
        (lambda: OwnOutput(3, 4) and rnnfuse.Stack([(GruBefore(3, 4),)], bidirectional=True), "a pair of cells"),
    ],
)
def test_wrong_uses_are_named(use, message):
    with pytest.raises((TypeError, ValueError), match=message):
        use()


def test_a_result_of_another_structure_is_named():
    layer = rnnfuse.Recurrent(Shapeless())
    warnings.simplefilter("ignore")
    with pytest.raises(TypeError, match="a cell must return its new state"):
        layer(torch.randn(6, 5, 3), torch.zeros(5, 3))
