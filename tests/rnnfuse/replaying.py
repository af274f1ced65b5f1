"""Layers whose calls are replayed, on any device, beside plain loops."""

import torch
from cells import FineLstm
from helpers import assert_same, gradients

import rnnfuse
from rnnfuse import replayed
from rnnfuse.calling import flatten_call, initial_state
from rnnfuse.loop import run_loop
from rnnfuse.private import flatten

CALLS = replayed.CALLS


def doubles(device, *shape):
    return torch.randn(*shape, dtype=torch.float64, device=device)


def an_input(device):
    """Like those of a layer that is `warmed`."""
    return doubles(device, 9, 4, 5).requires_grad_()


def by_loops(cells, xs, state=None, lengths=None, extras=None):
    """The outputs of plain loops on top of each other, and the last states of all."""
    ends = []
    inside = None if lengths is None else torch.arange(len(xs), device=xs.device)[:, None] < lengths[None]
    for k, cell in enumerate(cells):
        own = initial_state(cell, xs[0]) if state is None else state[k]
        xs, last, _ = run_loop(cell, flatten_call(xs, own, extras or {}, inside))
        ends += last
    return xs, ends


def chain(cells, **options):
    """Layers on top of each other that run as one chain, on a CPU too."""
    stack = rnnfuse.Stack(cells, **options)
    layers = [layer for (layer,) in stack.layers]

    def call(xs, state=None, lengths=None, **extras):
        return stack._chained(layers, xs, state, lengths, extras)

    return stack, call


def compare(call, cells, xs, state=None, lengths=None, more=(), tolerance=1e-10, **extras):
    """One call and its derivative, beside the loops."""
    wanted = [xs.requires_grad_(), *more, *(one for cell in cells for one in cell.parameters())]
    outputs, ends = by_loops(cells, xs, state, lengths, extras)
    expected = [outputs, *ends, *gradients(outputs, ends, wanted)]
    outputs, end = call(xs, state, lengths, **extras)
    last = flatten(end)[0]
    assert_same(zip([outputs, *last, *gradients(outputs, last, wanted)], expected, strict=True), tolerance)


def known(layer):
    """All kinds of calls that the layers know of, the oldest first."""
    layers = [one for one in layer.modules() if isinstance(one, rnnfuse.Recurrent)]
    return [kind for one in layers for plan in one._plans.values() for kind in plan.kinds.values()]


def replays(layer):
    """How many kinds of calls are replayed now."""
    return sum(kind.recorded is not None and not kind._is_refused for kind in known(layer))


def change(cells):
    """As an optimiser does: in place."""
    with torch.no_grad():
        for cell in cells:
            for one in cell.parameters():
                one.add_(torch.randn_like(one), alpha=0.05)


def three_cells(device, kind=FineLstm):
    return [kind(5 if k == 0 else 8, 8).double().to(device) for k in range(3)]


def a_layer(device, kind=FineLstm, **options):
    cell = kind(5, 8).double().to(device)
    return cell, rnnfuse.Recurrent(cell, **options)


def warmed(device, kind=FineLstm, **options):
    """A layer whose calls with [9, 4, 5] are replayed, where the gradient of those is wanted as well."""
    cell, layer = a_layer(device, kind, **options)
    for _ in range(CALLS + 1):
        compare(layer, [cell], an_input(device))
    assert replays(layer) == 1
    return cell, layer
