"""The plain loop over time: what a layer must compute, and what it falls back to."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from . import private
from .calling import Call, masked, split_result


def run_loop(cell: nn.Module, call: Call, reverse: bool = False) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """(outputs [steps, …], the tensors of the last state, those of all states [steps, …])."""
    extras = private.unflatten(call.extras, call.extras_structure)
    state: Any = private.unflatten(call.state, call.state_structure)
    leaves = call.state
    steps = call.xs.shape[0]
    outputs: list[Any] = [None] * steps
    states: list[Any] = [None] * steps
    for t in reversed(range(steps)) if reverse else range(steps):
        output, new_leaves, state = split_result(cell(call.xs[t], state, **extras), call.state_structure)
        if call.inside is not None:
            output, new_leaves = masked(call.inside[t], output, new_leaves, leaves)
            state = private.unflatten(new_leaves, call.state_structure)
        leaves = new_leaves
        outputs[t], states[t] = output, leaves
    return torch.stack(outputs), leaves, [torch.stack(one) for one in zip(*states, strict=True)]
