"""The layers of a chain: which tensors belong to which, what comes out, and their derivative by plain loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import private
from .passes import ForwardPass, Options
from .plan import Plan

Shape = tuple[torch.Size, torch.dtype]


class Link(NamedTuple):
    """A layer of a chain, and how many tensors it takes: sequences, state, extras, trained and fixed parameters.

    The layers above the first get their input from the one below, and count the other sequences only.
    """

    plan: Plan
    options: Options
    counts: tuple[int, int, int, int, int]


def needs_input_gradients(links: Sequence[Link], tensors: Sequence[Tensor]) -> bool:
    """Whether the gradients of the sequences that a chain is given are wanted."""
    return any(one.requires_grad for one in tensors[: links[0].counts[0]])


def divided(tensors: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    found, left = [], list(tensors)
    for count in counts:
        found.append(left[:count])
        left = left[count:]
    return found


def results(passes: Sequence[ForwardPass], states: bool, keep: bool) -> list[Tensor]:
    """Copies, because the passes' memory is read again by the derivative, and may be an input's."""
    outputs = passes[-1].outputs
    outputs = outputs.clone() if keep or not passes[-1].owns_outputs else outputs.contiguous()
    found = [outputs, *private.copies([one for a_pass in passes for one in a_pass.last])]
    return found + private.copies(passes[0].all_states()) if states else found


def completed(
    gradients: Sequence[Tensor | None], shapes: Sequence[Shape], device: torch.device, besides: range = range(0)
) -> list[Any]:
    """With zeros for results that nothing depends on, besides those at these places."""
    return [
        torch.zeros(shape, dtype=dtype, device=device) if one is None and k not in besides else one
        for k, (one, (shape, dtype)) in enumerate(zip(gradients, shapes, strict=True))
    ]


def derivative_by_loop(
    links: Sequence[Link], inputs: Sequence[Tensor], gradients: Sequence[Tensor]
) -> list[Tensor | None]:
    """The gradients of all inputs as functions that can be differentiated again."""
    if any(link.plan.step.draws for link in links):
        raise RuntimeError("a cell that draws random numbers cannot be differentiated twice: they would be drawn again")
    last: list[Tensor] = []
    with torch.enable_grad():
        below: list[Tensor] = []
        for link, given in zip(links, divided(inputs, [sum(link.counts) for link in links]), strict=True):
            sequences, state, extras, trained, fixed = divided(given, link.counts)
            sequences = [*below, *sequences]
            steps = len(sequences[0])
            outputs: list[Any] = [None] * steps
            states: list[Any] = [None] * steps
            for t in reversed(range(steps)) if link.options.reverse else range(steps):
                outputs[t], state = link.plan.joint.step(trained, fixed, [one[t] for one in sequences], state, extras)
                states[t] = state
            below = [torch.stack(outputs)]
            last += state
        found = [*below, *last]
        if links[0].options.states:
            found += [torch.stack(one) for one in zip(*states, strict=True)]
    wanted = [one for one in inputs if one.requires_grad]
    derivatives = torch.autograd.grad(found, wanted, gradients, create_graph=True, allow_unused=True)
    by_input = dict(zip(map(id, wanted), derivatives, strict=True))
    return [by_input.get(id(one)) for one in inputs]
