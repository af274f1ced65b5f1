"""The passes of layers on top of each other by their plans, forwards and backwards. A layer alone is a chain of one.

On a GPU a layer begins with the first steps as soon as the layer below has made them, each layer on a stream of its
own: a wavefront. A layer alone leaves most of the device idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from .buffers import Buffers
from .links import Link, divided
from .passes import BackwardPass, ForwardPass, Inputs
from .ranges import run_layers


class Kept(NamedTuple):
    """What the derivative needs of a forward pass, whose tensors are kept elsewhere."""

    places: list[list[tuple[fx.Node, bool]]]  # of each layer: whose values, and whether they are the same at every step
    steps: int
    rows: int
    device: torch.device


def run_forward(
    links: Sequence[Link], tensors: Sequence[Tensor], keep: bool, draws: Sequence[Tensor] | None = None
) -> list[ForwardPass]:
    """`keep`: what the derivative needs. `draws`: random numbers of all layers that were drawn before."""
    passes: list[ForwardPass] = []
    drawn = None if draws is None else divided(draws, [len(link.plan.step.draws) for link in links])
    for k, (link, given) in enumerate(zip(links, divided(tensors, [sum(link.counts) for link in links]), strict=True)):
        sequences, *others = divided(given, link.counts)
        below = [passes[-1].outputs] if passes else []
        inputs = Inputs([*below, *sequences], *others)
        passes.append(ForwardPass(link.plan, link.options, inputs, keep, None if drawn is None else drawn[k]))
    run_layers(passes, passes[0].buffers.steps, links[0].options.reverse, tensors[0].device)
    return passes


def kept_by(links: Sequence[Link], passes: Sequence[ForwardPass]) -> tuple[Kept, list[Tensor]]:
    """What the derivative needs, and its tensors."""
    places, tensors = [], []
    for link, one in zip(links, passes, strict=True):
        constant, series = one.buffers.constant, one.buffers.series
        nodes = [node for node in link.plan.saved if node in constant or node in series]
        places.append([(node, node in constant) for node in nodes])
        tensors += [constant[node] if node in constant else one.buffers.whole(node) for node in nodes]
    first = passes[0].buffers
    return Kept(places, first.steps, first.rows, first.device), tensors


def run_backward(
    links: Sequence[Link], kept: Kept, tensors: Sequence[Tensor], gradients: Sequence[Any], to_inputs: bool
) -> list[Tensor | None]:
    """The gradients of all that the chain was given, from those of all that came out of it; of last states they may be
    None, for zeros.

    `to_inputs`: whether those of the first layer's sequences are wanted. They cost a product over all steps.
    """
    d_last = divided(gradients[1:], [link.counts[1] for link in links])
    d_states = gradients[1 + sum(link.counts[1] for link in links) :]
    rest = iter(tensors)
    passes: list[BackwardPass] = []  # from the last layer to the first
    every = []
    for link, places in zip(links, kept.places, strict=True):
        buffers = Buffers(link.plan, kept.steps, kept.rows, kept.device)
        for node, is_constant in places:
            if is_constant:
                buffers.constant[node] = next(rest)
            else:
                buffers.put(node, next(rest))
        every.append(buffers)
    for link, buffers, d_end in zip(links[::-1], every[::-1], d_last[::-1], strict=True):
        d_outputs = passes[-1].reserve_input_gradient() if passes else gradients[0].contiguous()
        wanted = to_inputs or len(passes) < len(links) - 1
        passes.append(BackwardPass(link.plan, link.options, buffers, d_outputs, d_end, d_states, wanted))
    run_layers(passes, kept.steps, not links[0].options.reverse, kept.device)
    found: list[Tensor | None] = []
    for link, one in zip(links, passes[::-1], strict=True):
        of_layer = one.gradients()
        sequences = of_layer.sequences[len(of_layer.sequences) - link.counts[0] :]
        found += [*sequences, *of_layer.state, *of_layer.extras, *of_layer.trained, *[None] * link.counts[4]]
    return found
