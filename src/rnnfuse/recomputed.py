"""A layer that computes again what its derivative needs: less memory for more time."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from . import private
from .links import Link, derivative_by_loop, divided, results
from .passes import BackwardPass, ForwardPass, Inputs
from .ranges import begin


class Recomputed(torch.autograd.Function):
    """One layer. Only the states between ranges of steps are kept; a range is run again before its derivative."""

    @staticmethod
    def forward(ctx: Any, links: Sequence[Link], *tensors: Tensor) -> tuple[Tensor, ...]:
        (link,) = links
        inputs = Inputs(*divided(tensors, link.counts))
        a_pass = ForwardPass(link.plan, link.options, inputs, keep=False)
        begin([a_pass])
        steps = a_pass.buffers.steps
        length = 1 << (isqrt(steps).bit_length())
        ranges = [(start, min(start + length, steps)) for start in range(0, steps, length)]
        ctx.link, ctx.ranges = link, ranges[::-1] if link.options.reverse else ranges
        states: list[Tensor] = []
        for start, stop in ctx.ranges:
            states += [one.clone() for one in a_pass.entering(start, stop)]
            a_pass.run(start, stop)
        ctx.save_for_backward(*tensors, *a_pass.draws, *states)
        return tuple(results([a_pass], link.options.states, keep=True))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        link: Link = ctx.link
        total, draws = sum(link.counts), len(link.plan.step.draws)
        tensors, drawn, kept = divided(ctx.saved_tensors, [total, draws, len(ctx.ranges) * link.counts[1]])
        if torch.is_grad_enabled():
            return (None, *derivative_by_loop([link], tensors, gradients))
        inputs = Inputs(*divided(tensors, link.counts))
        states = divided(kept, [link.counts[1]] * len(ctx.ranges))
        d_state, d_states = list(gradients[1 : 1 + link.counts[1]]), gradients[1 + link.counts[1] :]
        d_sequences: list[list[Tensor]] = [[] for _ in inputs.sequences]
        to_inputs = any(ctx.needs_input_grad[1 : 1 + link.counts[0]])
        sums: list[Any] = [None] * (link.counts[2] + link.counts[3])
        with private.no_autocast(tensors[0].device.type):
            for (start, stop), state in zip(ctx.ranges[::-1], states[::-1], strict=True):

                def cut(some: Sequence[Tensor], start: int = start, stop: int = stop) -> list[Tensor]:
                    return [one[start:stop].contiguous() for one in some]

                of_range = inputs._replace(sequences=cut(inputs.sequences), state=state)
                again = ForwardPass(link.plan, link.options, of_range, keep=True, draws=cut(drawn))
                begin([again])
                again.run(0, stop - start)
                d_outputs, more = cut(gradients[:1])[0], cut(d_states)
                backwards = BackwardPass(link.plan, link.options, again.buffers, d_outputs, d_state, more, to_inputs)
                begin([backwards])
                backwards.run(0, stop - start)
                found = backwards.gradients()
                d_state = found.state
                for every, one in zip(d_sequences, found.sequences, strict=True):
                    every += [] if one is None else [one]
                new = [*found.extras, *found.trained]
                sums = [b if a is None else a if b is None else a + b for a, b in zip(sums, new, strict=True)]
        order = 1 if link.options.reverse else -1
        whole = [torch.cat(every[::order]) if every else None for every in d_sequences]
        return (None, *whole, *d_state, *sums, *[None] * link.counts[4])
