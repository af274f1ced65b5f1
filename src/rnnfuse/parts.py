"""The operators of a zone as a function: what they need of other zones goes in, what others need of them comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from . import private
from .large_products import LargeProducts
from .rewriting import operands
from .zones import Zone, Zones

aten = torch.ops.aten


class Part:
    """A function from the values of `inputs` to those of `outputs`, for any number of rows."""

    def __init__(
        self, zones: Zones, zone: Zone, outputs: Sequence[fx.Node], handed_on: Sequence[fx.Node | None] = ()
    ) -> None:
        """`handed_on`: in a loop, the outputs that the next step begins with."""
        self.outputs = list(outputs)
        self.nodes = nodes = _needed(self.outputs, zones, zone)
        # In a loop, a product that comes last is not compiled but called, to write into its place. What it multiplies
        # must have a place too.
        is_loop = zone in (Zone.LOOP, Zone.BACK)
        self.last_products = _last_products(self.outputs, set(nodes)) if is_loop else []
        for product in self.last_products:
            self.outputs += [one for one in operands(product) if one in nodes and one not in self.outputs]
        self.inputs = list(
            dict.fromkeys(
                one
                for node in nodes
                for one in node.all_input_nodes
                if zones.of[one] not in (zone, Zone.ANYWHERE) and one is not zones.step.ports.rows
            )
        )
        self.operators = len(nodes)
        #: Over all steps they are large.
        self.products = LargeProducts() if zone in (Zone.AHEAD, Zone.AFTER) else None
        self._module = _extracted(zones, nodes, self.inputs, self.outputs, products=self.products)
        self._written = self._find_written(set(nodes))
        #: Outputs that lie within another one, and need not be written again.
        self.within = {one.value: one for one in self._written if one.start is not None and one.value in self.outputs}
        for node in handed_on:
            if node is not None:
                self.within.pop(node, None)
        self._written = [one for one in self._written if one.start is not None or one.value not in self.within]
        values = [one.value for one in self._written]
        self._inner = _extracted(zones, _needed(values, zones, zone), self.inputs, values)
        self._compiled: dict[tuple[Any, ...], Callable[[list[Tensor]], Any]] = {}
        self._zones = zones
        self._writing: dict[frozenset[fx.Node], fx.GraphModule] = {}  # by the products that they write in place

    def __bool__(self) -> bool:
        return bool(self.outputs)

    @property
    def compilations(self) -> int:
        return len(self._compiled)

    def __call__(self, rows: int, values: Sequence[Tensor]) -> Sequence[Tensor]:
        """Operator by operator."""
        found: Sequence[Tensor] = self._module.forward(rows, *values)  # there are no hooks to ask for
        return found

    def can_write(self, output: fx.Node) -> bool:
        """Whether it is a product of rows, which can be written where it belongs."""
        return output.target is aten.mm.default and self._zones.step.row_dimensions[output] == (0,)

    def run_into(self, rows: int, values: Sequence[Tensor], into: Mapping[fx.Node, Tensor]) -> dict[fx.Node, Tensor]:
        """Operator by operator, these products into these tensors. Returns the other outputs."""
        places = [node for node in self.outputs if node in into]
        if not places:
            return dict(zip(self.outputs, self(rows, values), strict=True))
        rest = [node for node in self.outputs if node not in into]
        key = frozenset(places)
        if key not in self._writing:
            self._writing[key] = _extracted(self._zones, self.nodes, self.inputs, rest, places, self.products)
        found = self._writing[key].forward(rows, *values, *[into[node] for node in places])
        return dict(zip(rest, found, strict=True))

    def in_place(self, rows: int, values: Sequence[Tensor], compile: bool) -> Callable[[list[Tensor]], None]:
        """A function of a list: the inputs, and then the tensors that the outputs are written into.

        Compiled, it is for this number of rows and these types and layouts only.
        """
        count = len(self.inputs)

        def by_operators(given: list[Tensor]) -> None:
            for into, value in zip(given[count:], self._module(rows, *given[:count]), strict=True):
                into.copy_(value)

        if not compile:
            return by_operators
        places = [count + self.outputs.index(one.output) for one in self._written]
        order = {node: place for place, node in enumerate([*self.inputs, *self.outputs])}
        products = [(*[order[one] for one in operands(node)], order[node]) for node in self.last_products]
        inner = self._compiled_inner(rows, [*values[:count], *self._targets(values, places)]) if places else None

        def compiled(given: list[Tensor]) -> None:
            if inner is not None:
                inner([*given[:count], *self._targets(given, places)])
            for left, right, into in products:
                torch.mm(given[left], given[right], out=given[into])

        return compiled

    def _targets(self, given: Sequence[Tensor], places: Sequence[int]) -> list[Tensor]:
        """The tensors, or parts of them, that the compiled operators write into."""
        return [
            given[place] if one.start is None else given[place].narrow(one.dimension, one.start, one.length)
            for one, place in zip(self._written, places, strict=True)
        ]

    def _compiled_inner(self, rows: int, values: Sequence[Tensor]) -> Callable[[list[Tensor]], Any]:
        key = (rows, *[(one.shape, one.dtype, one.device, one.stride()) for one in values])
        if key not in self._compiled:
            count = len(self.inputs)

            def write(*given: Tensor) -> list[Tensor]:
                for into, value in zip(given[count:], self._inner(rows, *given[:count]), strict=True):
                    into.copy_(value)
                return []

            self._compiled[key] = private.compiled(write, values)
        return self._compiled[key]

    def _find_written(self, nodes: set[fx.Node]) -> list[Written]:
        found = []
        for node in self.outputs:
            if node in self.last_products:
                continue
            users = [user for user in node.users if user in nodes and user not in self.last_products]
            if node.target is aten.cat.default and not users:
                # Piece by piece, each by the kernel that makes it, instead of one more kernel that puts them together.
                dimension = (operands(node)[1] if len(operands(node)) > 1 else 0) % node.meta["val"].dim()
                start = 0
                for piece in operands(node)[0]:
                    length = piece.meta["val"].shape[dimension]
                    found.append(Written(node, piece, dimension, start, length))
                    start += length
            else:
                found.append(Written(node, node))
        return found


class Written(NamedTuple):
    """A value that compiled operators write into an output, or into a part of it along a dimension."""

    output: fx.Node
    value: fx.Node
    dimension: int = 0
    start: int | None = None
    length: int = 0


def _last_products(outputs: Sequence[fx.Node], nodes: set[fx.Node]) -> list[fx.Node]:
    """The products among the outputs that no other operator here uses."""
    return [node for node in outputs if node.target is aten.mm.default and nodes.isdisjoint(node.users)]


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
    zones: Zones,
    nodes: Sequence[fx.Node],
    inputs: Sequence[fx.Node],
    outputs: Sequence[fx.Node],
    written: Sequence[fx.Node] = (),
    products: LargeProducts | None = None,
) -> fx.GraphModule:
    """`written`: products that are given a tensor each, behind the inputs, and are written into it."""
    graph = fx.Graph()
    copies = {zones.step.ports.rows: graph.placeholder("rows")}
    copies.update((node, graph.placeholder(node.name)) for node in inputs)
    places = {node: graph.placeholder(f"{node.name}_place") for node in written}
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda one: copies[one])
        if node in places:
            copies[node].target, copies[node].kwargs = aten.mm.out, {"out": places[node]}
        if products is not None and node.target is aten.mm.default:
            copies[node].target = products.multiply
    graph.output(tuple(copies[node] for node in outputs))
    return fx.GraphModule(zones.step.module, graph)
