"""What a call has beside its loops and its products over all steps: each is a kernel on a GPU, and takes its time."""

from collections import Counter

import pytest
import torch
from cells import FineLstm, SLstm
from helpers import assert_same
from torch.utils._python_dispatch import TorchDispatchMode

from rnnfuse import Recurrent, Stack, passes
from rnnfuse.calling import flatten_call
from rnnfuse.loop import run_loop

STEPS, BATCH, WIDTH, UNITS = 3, 4, 16, 24  # memory of a step that ends at a multiple of 64 bytes


class Counted(TorchDispatchMode):
    """How often each operator is called that is not a view."""

    def __init__(self):
        super().__init__()
        self.calls = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if not function.is_view and "empty" not in str(function):
            self.calls[str(function).removeprefix("aten.")] += 1
        return function(*args, **(kwargs or {}))


def operators_of(cell, monkeypatch):
    """(forwards, backwards) of a second call, without loops."""
    layer, xs = Recurrent(cell, compile=False), torch.randn(STEPS, BATCH, WIDTH, requires_grad=True)
    state = cell.initial_state(xs[0])
    layer(xs, state)[0].sum().backward()
    monkeypatch.setattr(passes, "run_range", lambda loop, start, stop: None)
    with Counted() as forwards:
        outputs, _ = layer(xs, state)
    gradients = torch.ones_like(outputs)
    with Counted() as backwards:
        torch.autograd.grad(outputs, [xs, *cell.parameters()], gradients)
    return forwards.calls, backwards.calls


def test_weights_of_gates_are_put_together_once_for_both_passes(monkeypatch):
    forwards, _ = operators_of(FineLstm(WIDTH, UNITS), monkeypatch)
    assert forwards["cat.default"] == 2  # those of the input, and those of the state
    assert forwards["clone.default"] == 1  # the outputs; what is turned is copied by a loop that is no kernel


def test_states_are_copied_at_once_and_gradients_of_those_that_nothing_needs_are_not_made(monkeypatch):
    for cell, states in ((FineLstm(WIDTH, UNITS), 2), (SLstm(WIDTH, UNITS), 4)):
        forwards, backwards = operators_of(cell, monkeypatch)
        assert len(cell.initial_state(torch.zeros(1, WIDTH))) == states
        assert forwards["_foreach_copy_.default"] == 2  # in, and out
        assert forwards["copy_.default"] == 0
        assert backwards["_foreach_zero_.default"] == 1
        assert backwards["zeros.default"] + backwards["copy_.default"] == 0


def test_weights_that_are_turned_are_copied_once_for_steps_that_run_one_by_one():
    """They read them at each step, and a product with turned weights is slower."""
    cell, xs = FineLstm(WIDTH, UNITS), torch.randn(STEPS, BATCH, WIDTH)
    outputs, _ = Recurrent(cell, compile=False)(xs)
    with Counted() as backwards:
        torch.autograd.grad(outputs, list(cell.parameters()), torch.ones_like(outputs))
    assert backwards.calls["clone.default"] == 1 + 2  # and the gradients of two groups of weights, for each gate


def test_states_of_all_layers_are_copied_at_once():
    cells = [FineLstm(WIDTH if k == 0 else UNITS, UNITS) for k in range(3)]
    stack, xs = Stack(cells, compile=False), torch.randn(STEPS, BATCH, WIDTH)
    with Counted() as forwards:
        outputs, _ = stack._chained([layer for (layer,) in stack.layers], xs, None, None, {})
    with Counted() as backwards:
        torch.autograd.grad(outputs, list(stack.parameters()), torch.ones_like(outputs))
    assert forwards.calls["_foreach_copy_.default"] == 2  # in, and out
    assert backwards.calls["_foreach_zero_.default"] == 1


def test_what_a_loss_needs_of_states_alone_has_its_gradient():
    """Then there is no gradient of the outputs."""
    cell = FineLstm(WIDTH, UNITS)
    xs, state = torch.randn(STEPS, BATCH, WIDTH), cell.initial_state(torch.zeros(BATCH, WIDTH))
    _, (_, found) = Recurrent(cell, compile=False)(xs, state)
    _, (_, expected), _ = run_loop(cell, flatten_call(xs, state, {}, None), False)
    pairs = [torch.autograd.grad(c.square().sum(), cell.parameters(), allow_unused=True) for c in (found, expected)]
    assert_same(zip(*pairs, strict=True), 1e-5)
    assert any(one is not None and one.any() for one in pairs[0])


@pytest.mark.parametrize(("units", "written"), [(UNITS, 2), (5, 0)])  # memory of a step that ends elsewhere has gaps
def test_a_layers_gradient_is_written_where_the_layer_below_reads_it(units, written):
    cells = [FineLstm(WIDTH if k == 0 else units, units) for k in range(3)]
    stack, xs = Stack(cells, compile=False), torch.randn(STEPS, BATCH, WIDTH, requires_grad=True)
    wanted, found = [xs, *stack.parameters()], []
    layers = [layer for (layer,) in stack.layers]
    for outputs, _ in (stack._chained(layers, xs, None, None, {}), stack(xs)):  # as on a GPU, and one after the other
        with Counted() as backwards:
            found.append(torch.autograd.grad(outputs.square().sum(), wanted))
        if len(found) == 1:
            assert backwards.calls["mm.out"] == written
    assert_same(zip(*found, strict=True), 1e-5)
