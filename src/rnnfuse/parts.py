"""The operators of a zone as a function: what they need of other zones goes in, what others need of them comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from . import private
from .zones import Zone, Zones


class Part:
    """A function from the values of `inputs` to those of `outputs`, for any number of rows."""

    def __init__(self, zones: Zones, zone: Zone, outputs: Sequence[fx.Node]) -> None:
        self.outputs = list(outputs)
        nodes = _needed(self.outputs, zones, zone)
        self.inputs = list(
            dict.fromkeys(
                one
                for node in nodes
                for one in node.all_input_nodes
                if zones.of[one] not in (zone, Zone.ANYWHERE) and one is not zones.step.ports.rows
            )
        )
        self.operators = len(nodes)
        self._module = _extracted(zones, nodes, self.inputs, self.outputs)
        self._compiled: dict[tuple[Any, ...], Callable[..., Sequence[Tensor]]] = {}

    def __bool__(self) -> bool:
        return bool(self.outputs)

    @property
    def compilations(self) -> int:
        return len(self._compiled)

    def __call__(self, rows: int, values: Sequence[Tensor]) -> Sequence[Tensor]:
        """Operator by operator."""
        found: Sequence[Tensor] = self._module(rows, *values)
        return found

    def compiled(self, rows: int, values: Sequence[Tensor]) -> Callable[[list[Tensor]], Sequence[Tensor]]:
        """As one compiled function for this number of rows and these types; called with a list of values."""
        key = (rows, *[(one.shape, one.dtype, one.device, one.stride()) for one in values])
        if key not in self._compiled:
            module = self._module

            class Closed(torch.nn.Module):
                def forward(self, *given: Tensor) -> Sequence[Tensor]:
                    # What comes out of one step goes into the next, which is compiled for one layout.
                    return [one.contiguous() for one in module(rows, *given)]

            self._compiled[key] = private.compiled(Closed(), values)
        return self._compiled[key]


def _needed(outputs: Iterable[fx.Node], zones: Zones, zone: Zone) -> list[fx.Node]:
    """The nodes of a zone that its outputs need, in order."""
    found: set[fx.Node] = set()
    waiting = list(outputs)
    while waiting:
        node = waiting.pop()
        if node not in found and zones.of[node] in (zone, Zone.ANYWHERE):
            found.add(node)
            waiting += [one for one in node.all_input_nodes if one in zones.of]
    return [node for node in zones.step.graph.nodes if node in found]


def _extracted(
    zones: Zones, nodes: Sequence[fx.Node], inputs: Sequence[fx.Node], outputs: Sequence[fx.Node]
) -> fx.GraphModule:
    graph = fx.Graph()
    copies = {zones.step.ports.rows: graph.placeholder("rows")}
    copies.update((node, graph.placeholder(node.name)) for node in inputs)
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda one: copies[one])
    graph.output(tuple(copies[node] for node in outputs))
    return fx.GraphModule(zones.step.module, graph)
