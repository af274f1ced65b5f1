"""Layers on top of each other by their plans, as one function of autograd. A single layer is a chain of one.

On a GPU a layer begins with the first steps as soon as the layer below has made them, each layer on a stream of its
own: a wavefront. A layer alone leaves most of the device idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from . import private
from .buffers import Buffers
from .links import Link, derivative_by_loop, divided, results
from .passes import BackwardPass, ForwardPass, Inputs
from .ranges import run_layers
from .recomputed import Recomputed


def run_fused(links: Sequence[Link], tensors: Sequence[Tensor]) -> list[Tensor]:
    """As `Fused` returns them; without gradients nothing is kept for them."""
    with private.no_autocast(tensors[0].device.type):
        if torch.is_grad_enabled() and any(one.requires_grad for one in tensors):
            function: Any = Recomputed if links[0].options.recompute else Fused
            return list(function.apply(links, *tensors))
        return results(run_forward(links, tensors, keep=False), links[0].options.states, keep=False)


def run_forward(links: Sequence[Link], tensors: Sequence[Tensor], keep: bool) -> list[ForwardPass]:
    passes: list[ForwardPass] = []
    for link, given in zip(links, divided(tensors, [sum(link.counts) for link in links]), strict=True):
        sequences, *others = divided(given, link.counts)
        below = [passes[-1].outputs] if passes else []
        passes.append(ForwardPass(link.plan, link.options, Inputs([*below, *sequences], *others), keep))
    run_layers(passes, passes[0].buffers.steps, links[0].options.reverse, tensors[0].device)
    return passes


class Fused(torch.autograd.Function):
    """Returns the last layer's outputs, the last states of all layers, and all states of a layer alone if asked for."""

    @staticmethod
    def forward(ctx: Any, links: Sequence[Link], *tensors: Tensor) -> tuple[Tensor, ...]:
        passes = run_forward(links, tensors, keep=True)
        ctx.links = links
        ctx.shape = (passes[0].buffers.steps, passes[0].buffers.rows)
        saved: list[Tensor] = list(tensors)
        ctx.places = []
        for link, one in zip(links, passes, strict=True):
            kept = [node for node in link.plan.saved if node in one.buffers.constant or node in one.buffers.series]
            ctx.places.append([(node, node in one.buffers.constant) for node in kept])
            saved += [
                one.buffers.constant[node] if node in one.buffers.constant else one.buffers.whole(node) for node in kept
            ]
        ctx.save_for_backward(*saved)
        return tuple(results(passes, links[0].options.states, keep=True))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        links: Sequence[Link] = ctx.links
        total = sum(sum(link.counts) for link in links)
        saved = ctx.saved_tensors  # once: a checkpoint recomputes them at each reading
        inputs, rest = list(saved[:total]), iter(saved[total:])
        if torch.is_grad_enabled():  # somebody wants the derivative of this derivative
            return (None, *derivative_by_loop(links, inputs, gradients))
        d_last = divided(gradients[1:], [link.counts[1] for link in links])
        d_states = gradients[1 + sum(link.counts[1] for link in links) :]
        steps, rows = ctx.shape
        every = []
        for link, places in zip(links, ctx.places, strict=True):
            buffers = Buffers(link.plan, steps, rows, inputs[0].device)
            for node, is_constant in places:
                if is_constant:
                    buffers.constant[node] = next(rest)
                else:
                    buffers.put(node, next(rest))
            every.append(buffers)
        with private.no_autocast(inputs[0].device.type):
            passes: list[BackwardPass] = []  # from the last layer to the first
            for link, buffers, d_end in zip(links[::-1], every[::-1], d_last[::-1], strict=True):
                d_outputs = passes[-1].reserve_input_gradient() if passes else gradients[0].contiguous()
                passes.append(BackwardPass(link.plan, link.options, buffers, d_outputs, d_end, d_states))
            run_layers(passes, steps, not links[0].options.reverse, inputs[0].device)
            found: list[Any] = []
            for link, one in zip(links, passes[::-1], strict=True):
                of_layer = one.gradients()
                sequences = of_layer.sequences[len(of_layer.sequences) - link.counts[0] :]
                fixed = [None] * link.counts[4]
                found += [*sequences, *of_layer.state, *of_layer.extras, *of_layer.trained, *fixed]
        return (None, *found)
