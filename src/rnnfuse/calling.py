"""How a cell is called: `cell(x, state, **extras) -> state` or `-> (output, state)`; and what of it is a tensor.

A state is a tensor, or a tuple, list or dict of them. A result of the same structure as the state is the new state, and
its first tensor is the output. Otherwise it must be a pair of output and new state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from . import private


class Call(NamedTuple):
    """The tensors of one call of a layer, in flat lists, and what is needed to put them together again."""

    xs: Tensor  # [steps, batch, …]
    inside: Tensor | None  # [steps, batch]: whether a step lies within its sequence; None: all do
    state: list[Tensor]
    extras: list[Tensor]
    state_structure: Any
    extras_structure: Any

    @property
    def sequences(self) -> list[Tensor]:
        """What differs from step to step."""
        return [self.xs] if self.inside is None else [self.xs, self.inside]


class Held(NamedTuple):
    """What a cell holds, looked for once in a call: its modules, and its tensors by name, each once."""

    modules: list[nn.Module]
    trained: dict[str, Tensor]
    fixed: dict[str, Tensor]  # buffers, and parameters that are frozen

    @property
    def names(self) -> list[str]:
        return [*self.trained, *self.fixed]


def held_by(cell: nn.Module) -> Held:
    parameters = list(cell.named_parameters())
    trained: dict[str, Tensor] = {name: one for name, one in parameters if one.requires_grad}
    frozen = {name: one for name, one in parameters if not one.requires_grad}
    return Held(list(cell.modules()), trained, {**frozen, **dict(cell.named_buffers())})


def flatten_call(xs: Tensor, state: Any, extras: Mapping[str, Any], inside: Tensor | None = None) -> Call:
    state_leaves, state_structure = private.flatten(state)
    extras_leaves, extras_structure = private.flatten(dict(extras))
    for what, leaves in (("state", state_leaves), ("extra inputs", extras_leaves)):
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise TypeError(f"the {what} must consist of tensors, and it contains a {type(leaf).__name__}")
    if not state_leaves:
        raise TypeError("the state contains no tensor")
    return Call(xs, inside, state_leaves, extras_leaves, state_structure, extras_structure)


def split_result(result: Any, state_structure: Any) -> tuple[Tensor, list[Tensor], Any]:
    """The output, the new state's tensors, and the state itself as the cell returned it."""
    leaves, structure = private.flatten(result)
    if structure == state_structure:
        return leaves[0], leaves, result
    if isinstance(result, Sequence) and len(result) == 2 and isinstance(result[0], Tensor):
        leaves, structure = private.flatten(result[1])
        if structure == state_structure:
            return result[0], leaves, result[1]
    raise TypeError(
        "a cell must return its new state, or a pair of output and new state, and the new state must have the "
        f"structure of the state it was given: {state_structure}, not {structure}"
    )


def masked(
    inside: Tensor | None, output: Tensor, new: Sequence[Tensor], old: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """Beyond the end of a sequence its state stays, and its output is zero."""
    if inside is None:
        return output, list(new)

    def choose(value: Tensor, other: Tensor) -> Tensor:
        return torch.where(inside.view(-1, *[1] * (value.dim() - 1)), value, other)

    return choose(output, torch.zeros_like(output)), [choose(*pair) for pair in zip(new, old, strict=True)]


def initial_state(cell: nn.Module, x: Tensor) -> Any:
    """The state before the first step: by the cell's own `initial_state(x)`, or zeros for PyTorch's own cells."""
    beginning: Any = getattr(cell, "initial_state", None)
    if beginning is not None:
        return beginning(x)
    if isinstance(cell, nn.RNNCellBase):
        dtype = cell.weight_hh.dtype
        zeros = torch.zeros(x.shape[0], cell.hidden_size, dtype=dtype, device=x.device)
        return (zeros, zeros.clone()) if isinstance(cell, nn.LSTMCell) else zeros
    raise TypeError(
        f"{type(cell).__name__} does not say how it begins: give the layer a state, or the cell a method "
        "initial_state(x), which gets the input of the first step"
    )


def outside_inference_mode(call: Call) -> Call:
    """The same call with tensors that can have derivatives."""
    ordinary = [one.clone() if one.is_inference() else one for one in (call.xs, *call.state, *call.extras)]
    inside = call.inside.clone() if call.inside is not None and call.inside.is_inference() else call.inside
    state, extras = ordinary[1 : 1 + len(call.state)], ordinary[1 + len(call.state) :]
    return call._replace(xs=ordinary[0], inside=inside, state=state, extras=extras)
