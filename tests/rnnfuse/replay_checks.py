"""What must hold of calls that are replayed, on any device: with real graphs, or with something in their place.

Each function takes a device, and makes calls of a layer beside plain loops until they are replayed, and beyond.
"""

import copy
import logging

import pytest
import torch
from cells import Attending, Dropping, FineLstm, GruBefore
from helpers import assert_same
from replaying import (
    CALLS,
    a_layer,
    an_input,
    by_loops,
    chain,
    change,
    compare,
    doubles,
    known,
    replays,
    three_cells,
    warmed,
)
from torch.utils.checkpoint import checkpoint

import rnnfuse
from rnnfuse import recorded, replayed


def inputs_and_weights_change(device, kind):
    cells = three_cells(device, kind)
    stack, call = chain(cells)
    for number in range(CALLS + 4):
        compare(call, cells, an_input(device))
        change(cells)
        assert replays(stack) == (number >= CALLS)


def lengths_change(device, kind):
    cells = three_cells(device, kind)
    stack, call = chain(cells)
    for number in range(CALLS + 3):
        lengths = torch.tensor([9, 1 + number, 3, 9 - number], device=device)
        compare(call, cells, an_input(device), lengths=lengths)
    assert replays(stack) == 1


def states_are_given_and_get_gradients(device):
    cells = three_cells(device)
    stack, call = chain(cells)
    for _ in range(CALLS + 3):
        state = [tuple(doubles(device, 4, 8).requires_grad_() for _ in range(2)) for _ in cells]
        compare(call, cells, an_input(device), state, more=[one for pair in state for one in pair])
    assert replays(stack) == 1


def extra_inputs_get_gradients(device):
    cell, layer = a_layer(device, Attending)
    for number in range(CALLS + 3):
        memory = doubles(device, 4, 7, 4) if number % 2 else doubles(device, 4, 4, 7).transpose(1, 2)
        memory.requires_grad_()

        def call(xs, state, lengths, memory):
            return layer(xs, state if state is None else state[0], lengths, memory=memory)

        compare(call, [cell], an_input(device), more=[memory], memory=memory)
    assert replays(layer) == 1


def inputs_without_gradients_are_other_calls(device):
    """Their gradient is not computed, and what was recorded without it serves no call that wants it."""
    cell, layer = a_layer(device)
    parameters = list(cell.parameters())
    for _ in range(CALLS + 2):
        xs = doubles(device, 9, 4, 5)
        wanted = torch.autograd.grad(by_loops([cell], xs)[0].square().sum(), parameters)
        assert_same(zip(torch.autograd.grad(layer(xs)[0].square().sum(), parameters), wanted, strict=True))
    assert replays(layer) == 1
    for _ in range(CALLS + 2):
        compare(layer, [cell], doubles(device, 9, 4, 5))
    assert replays(layer) == 2


def two_calls_before_their_gradients(device):
    cell, layer = warmed(device)
    parameters = list(cell.parameters())
    for _ in range(2):
        both = [an_input(device) for _ in range(2)]
        expected = [torch.autograd.grad(by_loops([cell], xs)[0].sum(), parameters) for xs in both]
        outputs = [layer(xs)[0] for xs in both]
        found = [torch.autograd.grad(ys.sum(), parameters) for ys in outputs]
        for pair in zip(found, expected, strict=True):
            assert_same(zip(*pair, strict=True))
        assert replays(layer) == 0  # it would happen again
        change([cell])


def two_calls_before_their_gradients_from_the_beginning(device):
    _, layer = a_layer(device)
    for _ in range(CALLS + 2):
        one, other = (layer(an_input(device))[0] for _ in range(2))
        (one.sum() + other.sum()).backward()
    assert all(kind.recorded is None for kind in known(layer))  # nothing was recorded in vain


def a_graph_is_retained(device):
    cell, layer = warmed(device)
    parameters = list(cell.parameters())
    xs = an_input(device)
    expected, _ = by_loops([cell], xs)
    outputs, _ = layer(xs)
    for loss in (torch.sum, lambda ys: ys.square().sum()):
        wanted = torch.autograd.grad(loss(expected), parameters, retain_graph=True)
        found = torch.autograd.grad(loss(outputs), parameters, retain_graph=True)
        assert_same(zip(found, wanted, strict=True))
    assert replays(layer) == 1


def derivatives_of_derivatives(device):
    cell, layer = warmed(device)
    xs = an_input(device)

    def second(outputs):
        (first,) = torch.autograd.grad(outputs.square().sum(), xs, create_graph=True)
        return torch.autograd.grad(first.square().sum(), [xs, *cell.parameters()])

    assert_same(zip(second(layer(xs)[0]), second(by_loops([cell], xs)[0]), strict=True))
    assert replays(layer) == 1


def some_results_get_no_gradient(device):
    """Or one that is the same number everywhere, or lies in memory in another way."""
    cells = three_cells(device)
    stack, call = chain(cells)
    parameters = list(stack.parameters())
    weight = doubles(device, 8, 4, 9)
    losses = [
        lambda ys, ends: ys.sum(),
        lambda ys, ends: ends[0][1].square().sum(),
        lambda ys, ends: (ys.permute(2, 1, 0) * weight).sum(),
        lambda ys, ends: ends[2][0].sum() + ys[3].sum(),
        lambda ys, ends: ys[-1, :, 0].sum(),
    ]
    for number in range(CALLS + 2 * len(losses)):
        xs = an_input(device)
        loss = losses[number % len(losses)]
        ys, ends = by_loops(cells, xs)
        wanted = torch.autograd.grad(loss(ys, [ends[k : k + 2] for k in (0, 2, 4)]), parameters, allow_unused=True)
        found = torch.autograd.grad(loss(*call(xs)), parameters, allow_unused=True)
        assert_same(zip(found, wanted, strict=True))
    assert replays(stack) == 1


def gradients_are_none_where_they_were(device):
    """Of a parameter that the step does not use."""

    class Idle(GruBefore):
        def __init__(self, width, hidden):
            super().__init__(width, hidden)
            self.idle = torch.nn.Parameter(torch.ones(3))

    cell, layer = a_layer(device, Idle)
    for _ in range(CALLS + 2):
        layer(an_input(device))[0].sum().backward()
        assert cell.idle.grad is None
    assert replays(layer) == 1


def what_was_handed_out_stays(device):
    _, layer = warmed(device)
    parameters = list(layer.parameters())
    kept = []
    for _ in range(3):
        outputs, last = layer(an_input(device))
        some = [outputs, *last, *torch.autograd.grad(outputs.square().sum() + last[1].sum(), parameters)]
        kept.append((some, [one.detach().clone() for one in some]))
    for some, copies in kept:
        assert all(torch.equal(a, b) for a, b in zip(some, copies, strict=True))
    assert replays(layer) == 1
    with torch.no_grad():
        outputs.mul_(2)  # as any other tensor
    layer(an_input(device))[0].mul_(2).sum().backward()


def gradients_add_up(device):
    cell, layer = warmed(device)
    parameters = list(cell.parameters())
    total = [torch.zeros_like(one) for one in parameters]
    for _ in range(3):
        xs = an_input(device)
        for one, more in zip(total, torch.autograd.grad(by_loops([cell], xs)[0].sum(), parameters), strict=True):
            one += more
        layer(xs)[0].sum().backward()
    assert_same(zip([one.grad for one in parameters], total, strict=True))


def weights_that_change_before_the_gradient_are_noticed(device):
    cell, layer = warmed(device)
    outputs, _ = layer(an_input(device))
    change([cell])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        outputs.sum().backward()
    compare(layer, [cell], an_input(device))


def other_parameters_and_shapes_are_other_calls(device):
    cell, layer = warmed(device)
    cell.wi = torch.nn.Parameter(doubles(device, 5, 8))
    with torch.no_grad():
        cell.ui.data = cell.ui.t()  # the same memory, in another order
    for number in range(CALLS + 2):
        for steps, batch in ((9, 4), (9, 3), (7, 4)):
            compare(layer, [cell], doubles(device, steps, batch, 5))
        assert replays(layer) == (1 if number < CALLS else 4)  # the first is not called any more


def only_so_many_are_recorded(device):
    cell, layer = a_layer(device)
    for steps in range(2, 2 + replayed.MOST_RECORDED + 3):
        for _ in range(CALLS + 2):
            compare(layer, [cell], doubles(device, steps, 4, 5))
    assert replays(layer) == replayed.MOST_RECORDED


def only_so_many_are_known(device):
    cell, layer = warmed(device)
    for steps in range(10, 10 + 2 * replayed.MOST_KNOWN):
        layer(doubles(device, steps % 128 + 1, 1 + steps // 128, 5))
    assert len(known(layer)) <= replayed.MOST_KNOWN
    assert replays(layer) == 1
    compare(layer, [cell], an_input(device))


def without_gradients(device):
    cell, layer = a_layer(device)
    with torch.inference_mode():
        for _ in range(CALLS + 2):
            layer(an_input(device))
    assert replays(layer) == 1
    for _ in range(CALLS + 2):
        with torch.no_grad():
            xs = an_input(device)
            found, last = layer(xs)
            expected, ends = by_loops([cell], xs)
        assert not found.requires_grad
        assert_same(zip([found, *last], [expected, *ends], strict=True))
        compare(layer, [cell], an_input(device))
    assert replays(layer) == 2


def a_call_without_gradients_disturbs_none(device):
    cell, layer = warmed(device)
    parameters = list(cell.parameters())
    for _ in range(CALLS + 2):
        xs = an_input(device)
        outputs, _ = layer(xs)
        with torch.no_grad():
            layer(an_input(device))
        expected = torch.autograd.grad(by_loops([cell], xs)[0].sum(), parameters)
        assert_same(zip(torch.autograd.grad(outputs.sum(), parameters), expected, strict=True))
    assert replays(layer) == 2


def some_calls_are_never_replayed(device):
    xs, long = an_input(device), doubles(device, replayed.LONGEST + 1, 2, 5)
    for options, given, more in (
        ({"replay": False}, xs, {}),
        ({"compile": False}, xs, {}),
        ({"recompute": True}, xs, {}),
        ({}, long, {}),
        ({}, xs, {"states": True}),
    ):
        _, layer = a_layer(device, **options)
        for _ in range(CALLS + 2):
            layer(given, **more)[0].sum().backward()
        assert not known(layer)


def checkpoints(device):
    """They call a layer again before its derivative."""
    for reentrant in (False, True):
        cell, layer = warmed(device)
        for _ in range(CALLS + 2):
            xs = an_input(device)
            expected = torch.autograd.grad(by_loops([cell], xs)[0].square().sum(), [xs, *cell.parameters()])
            for one in (xs, *cell.parameters()):
                one.grad = None
            checkpoint(lambda xs, layer=layer: layer(xs)[0], xs, use_reentrant=reentrant).square().sum().backward()
            assert_same(zip([one.grad for one in (xs, *cell.parameters())], expected, strict=True))
            change([cell])


def random_numbers_are_those_of_an_ordinary_call(device):
    cell = Dropping().to(device)
    layers = [rnnfuse.Recurrent(cell, replay=replay, persistent=False) for replay in (True, False)]
    for number in range(CALLS + 4):
        xs, results = torch.randn(9, 6, 3, device=device), []
        for layer in layers:
            torch.manual_seed(number)
            outputs, _ = layer(xs)
            after = torch.rand(3, device=device)
            results.append([outputs, *torch.autograd.grad(outputs.square().sum(), list(cell.parameters())), after])
        assert_same(zip(*results, strict=True), 1e-5)
        assert torch.equal(results[0][-1], results[1][-1])  # as many were drawn
    assert replays(layers[0]) == 1
    torch.manual_seed(7)
    one, other = (layers[0](xs)[0] for _ in range(2))  # the derivative of the first has the masks of the first
    found = torch.autograd.grad(one.square().sum(), list(cell.parameters()))
    torch.manual_seed(7)
    again = layers[1](xs)[0]
    expected = torch.autograd.grad(again.square().sum(), list(cell.parameters()))
    assert_same(zip([one, *found], [again, *expected], strict=True), 1e-5)
    assert not torch.equal(one, other)


def copies_begin_anew(device):
    cell, layer = warmed(device)
    other = copy.deepcopy(layer)
    assert not known(other)
    change([cell])
    for _ in range(CALLS + 2):
        compare(other, [other.cell], an_input(device))
        compare(layer, [cell], an_input(device))
    assert replays(layer) == replays(other) == 1


def autocast(device):
    cell = FineLstm(8, 16).to(device)
    layers = [rnnfuse.Recurrent(cell, replay=replay, persistent=False) for replay in (True, False)]
    for _ in range(CALLS + 2):
        xs, results = torch.randn(9, 4, 8, device=device), []
        for layer in layers:
            with torch.autocast(device, torch.bfloat16):
                outputs, _ = layer(xs)
            results.append([outputs, *torch.autograd.grad(outputs.float().square().sum(), list(cell.parameters()))])
        assert_same(zip(*results, strict=True), 2e-2)
    assert replays(layers[0]) == 1


def what_cannot_be_recorded_runs_as_before(device, monkeypatch, caplog):
    cell, layer = a_layer(device)
    monkeypatch.setattr(recorded, "run_backward", failing)
    with caplog.at_level(logging.DEBUG, "rnnfuse"):
        for _ in range(CALLS + 2):
            compare(layer, [cell], an_input(device))
    assert [record.message for record in caplog.records if "replayed" in record.message] == [
        "rnnfuse: calls of a kind are not replayed: not today"
    ]
    assert replays(layer) == 0


def failing(*_):
    raise ValueError("not today")


WITH_A_CELL = [inputs_and_weights_change, lengths_change]
ALL = [
    states_are_given_and_get_gradients,
    extra_inputs_get_gradients,
    inputs_without_gradients_are_other_calls,
    two_calls_before_their_gradients,
    two_calls_before_their_gradients_from_the_beginning,
    a_graph_is_retained,
    derivatives_of_derivatives,
    some_results_get_no_gradient,
    gradients_are_none_where_they_were,
    what_was_handed_out_stays,
    gradients_add_up,
    weights_that_change_before_the_gradient_are_noticed,
    other_parameters_and_shapes_are_other_calls,
    only_so_many_are_recorded,
    only_so_many_are_known,
    without_gradients,
    a_call_without_gradients_disturbs_none,
    some_calls_are_never_replayed,
    checkpoints,
    random_numbers_are_those_of_an_ordinary_call,
    copies_begin_anew,
    autocast,
]
