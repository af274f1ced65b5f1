"""Several layers, in one direction or in both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from . import private
from .fused import run_fused
from .links import divided
from .recurrent import Recurrent
from .wavefront import side_by_side


class Stack(nn.Module):
    """Layers on top of each other: `ys, last = stack(xs)`; `last` has the last state of every layer and direction.

    `cells`: one for each layer; with `bidirectional`, a pair for each, forwards and backwards, whose outputs are
    concatenated.

        >>> stack = Stack([nn.LSTMCell(3, 4), nn.LSTMCell(4, 4)])
        >>> ys, last = stack(torch.randn(7, 2, 3))
        >>> ys.shape, len(last)
        (torch.Size([7, 2, 4]), 2)
    """

    def __init__(
        self, cells: Sequence[Any], *, bidirectional: bool = False, batch_first: bool = False, **options: Any
    ) -> None:
        super().__init__()
        self.batch_first = batch_first
        pairs = [tuple(one) if bidirectional else (one,) for one in cells]
        if not pairs or any(len(pair) != 1 + bidirectional for pair in pairs):
            raise ValueError("a stack needs a cell for each layer; with bidirectional=True, a pair of cells")
        self.layers = nn.ModuleList(
            nn.ModuleList(Recurrent(cell, reverse=bool(k), **options) for k, cell in enumerate(pair)) for pair in pairs
        )

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(
        self, xs: Tensor, state: Sequence[Any] | None = None, lengths: Tensor | None = None, **extras: Any
    ) -> tuple[Tensor, list[Any]]:
        """`state`: one for each layer and direction, in the order of the last states."""
        layers: Any = self.layers
        directions = [layer for pair in layers for layer in pair]
        if state is not None and len(state) != len(directions):
            raise ValueError(f"there are {len(directions)} layers and directions, and {len(state)} states")
        given = iter(state if state is not None else [None] * len(directions))
        xs = xs.transpose(0, 1) if self.batch_first else xs
        if xs.is_cuda and len(layers) == len(directions) > 1:
            chained = self._chained(directions, xs, state, lengths, extras)
            if chained is not None:
                return (chained[0].transpose(0, 1) if self.batch_first else chained[0]), chained[1]
        last: list[Any] = []
        for pair in layers:
            calls = [partial(layer, xs, next(given), lengths, **extras) for layer in pair]
            outputs, ends = zip(*side_by_side(calls, xs.device), strict=True)
            last += ends
            xs = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=-1)
        return (xs.transpose(0, 1) if self.batch_first else xs), last

    def _chained(
        self, layers: list[Recurrent], xs: Tensor, state: Any, lengths: Tensor | None, extras: dict[str, Any]
    ) -> tuple[Tensor, list[Any]] | None:
        """All layers at once, each a few steps behind the one below; None where one of them cannot."""
        links, tensors, structures = [], [], []
        for k, layer in enumerate(layers):
            found = layer.link_of_chain(xs, state[k] if state is not None else None, lengths, extras, is_first=k == 0)
            if found is None:
                return None
            link, own, structure, xs = found
            links.append(link)
            tensors += own
            structures.append(structure)
        outputs, *rest = run_fused(links, tensors)
        ends = divided(rest, [link.counts[1] for link in links])
        return outputs, [private.unflatten(*pair) for pair in zip(ends, structures, strict=True)]

    def explain(self) -> str:
        layers: Any = self.layers
        return "\n\n".join(layer.explain() for pair in layers for layer in pair)
