"""A chain of layers as one function of autograd, in the ordinary way; and the choice between it and the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from . import private
from .chain import kept_by, run_backward, run_forward
from .links import Link, completed, derivative_by_loop, results
from .recomputed import Recomputed
from .replayed import Kind, Replayed, kind_of, run_replayed


def run_fused(links: Sequence[Link], tensors: Sequence[Tensor]) -> list[Tensor]:
    """As `Fused` returns them; without gradients nothing is kept for them."""
    with private.no_autocast(tensors[0].device.type):
        keep = torch.is_grad_enabled() and any(one.requires_grad for one in tensors)
        kind = kind_of(links, tensors, keep)
        is_recorded = kind is not None and kind.is_recorded(links, tensors)
        if keep:
            if links[0].options.recompute:
                return list(_apply(Recomputed, links, *tensors))
            return list(_apply(Replayed if is_recorded else Fused, links, kind, *tensors))
        if kind is not None and is_recorded:
            return run_replayed(links, kind, tensors)
        found = results(run_forward(links, tensors, keep=False), links[0].options.states, keep=False)
        if kind is not None:
            kind.ended(kind.begun())
        return found


def _apply(function: Any, *arguments: Any) -> tuple[Tensor, ...]:
    found: tuple[Tensor, ...] = function.apply(*arguments)
    return found


class Fused(torch.autograd.Function):
    """Returns the last layer's outputs, the last states of all layers, and all states of a layer alone if asked for."""

    @staticmethod
    def forward(ctx: Any, links: Sequence[Link], kind: Kind | None, *tensors: Tensor) -> tuple[Tensor, ...]:
        passes = run_forward(links, tensors, keep=True)
        ctx.links, ctx.kind, ctx.count = links, kind, len(tensors)
        ctx.number = 0 if kind is None else kind.begun()
        ctx.kept, saved = kept_by(links, passes)
        ctx.save_for_backward(*tensors, *saved)
        found = results(passes, links[0].options.states, keep=True)
        ctx.shapes = [(one.shape, one.dtype) for one in found]
        ctx.set_materialize_grads(False)  # few losses depend on last states
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        links: Sequence[Link] = ctx.links
        device = ctx.kept.device
        saved = ctx.saved_tensors  # once: a checkpoint recomputes them at each reading
        if torch.is_grad_enabled():  # somebody wants the derivative of this derivative
            complete = completed(gradients, ctx.shapes, device)
            return (None, None, *derivative_by_loop(links, saved[: ctx.count], complete))
        last = range(1, 1 + sum(link.counts[1] for link in links))
        with private.no_autocast(device.type):
            to_inputs = any(ctx.needs_input_grad[2 : 2 + links[0].counts[0]])
            given = completed(gradients, ctx.shapes, device, besides=last)
            found = run_backward(links, ctx.kept, saved[ctx.count :], given, to_inputs)
        if ctx.kind is not None:
            ctx.kind.ended(ctx.number)
        return (None, None, *found)
