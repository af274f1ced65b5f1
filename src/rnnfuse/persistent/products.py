"""Products of the state with weights: a program keeps its columns of the weights, and reads the state of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from ..plan import Form, Plan
from ..rewriting import operands
from .memory import Memory, Place
from .operators import SAME
from .text import Inexpressible, Text, Value

aten = torch.ops.aten

FEWEST = 16  # columns of a tile
WIDEST = 256


class Source(NamedTuple):
    """Some columns of the left side of a product, as they lie in memory."""

    place: Place
    moment: str
    start: int
    columns: int
    level: int  # from which on all programs know it


class Products:
    def __init__(self, plan: Plan, form: Form, memory: Memory, text: Text, value: Callable[[fx.Node], Value]) -> None:
        self._plan, self._form, self._memory, self._text, self._value = plan, form, memory, text, value
        self._sides: dict[tuple[Source, int, int], str] = {}
        self.weights = 0  # that a program holds for each of its units

    def product(self, node: fx.Node) -> Value:
        left, right = operands(node)
        units, columns = self._text.units, self._memory.columns(node)
        if not self._memory.is_constant(right) or self._plan.step.row_dimensions[right] or columns % units:
            raise Inexpressible("a product is not one of something with rows and of weights for all units")
        sources = self._sources(left)
        level = max(source.level for source in sources)
        weights = self._memory.of_input(right)
        names: list[str] = []
        while len(names) < columns // units:
            together = 1 << ((columns // units - len(names)).bit_length() - 1)  # a tile's width is a power of two
            total, before = "", 0
            for source in sources:
                for start, width in _tiles(source.columns):
                    side = self._side(source, start, width, level)
                    weight = self._weight(weights, len(names), together, before + start, width, before + source.columns)
                    added = f", {total}" if total else ""
                    dot = f"tl.dot({side}, {weight}{added}, input_precision=PRECISION)"
                    total = self._text.assign(level, "product", dot)
                before += source.columns
            names += self._apart(total, together, level)
        return Value(names, level, True)

    def _apart(self, name: str, together: int, level: int) -> list[str]:
        """The pieces of a tile that has those of each unit side by side."""
        if together == 1:
            return [name]
        shape = f"(BLOCK_ROWS, BLOCK_UNITS, {together // 2}, 2)" if together > 2 else "(BLOCK_ROWS, BLOCK_UNITS, 2)"
        self._text.names += 2
        even, odd = f"even_{self._text.names - 1}", f"odd_{self._text.names}"
        self._text.write(level, f"{even}, {odd} = tl.split(tl.reshape({name}, {shape}))")
        halves = [self._apart(half, together // 2, level) for half in (even, odd)]
        return [one for pair in zip(*halves, strict=True) for one in pair]

    def _side(self, source: Source, start: int, width: int, level: int) -> str:
        key = (source._replace(level=level), start, width)
        if key not in self._sides:
            place, columns = source.place, f"tl.arange(0, {width})[None, :]"
            inside = f"in_rows & ({columns} < {source.columns - start})"
            at = place.address(source.moment, "row", f"{source.start + start} + {columns}")
            # Not from the first cache, which knows nothing of what other programs have written.
            load = f'tl.load({at}, mask={inside}, other=0.0, cache_modifier=".cg")'
            self._sides[key] = self._text.assign(level, "side", load)
        return self._sides[key]

    def _weight(self, place: Place, first: int, together: int, start: int, width: int, end: int) -> str:
        """Some lines of the weights, for a few pieces of each unit: those of a unit stand side by side."""
        before = self._text.before
        self.weights += width * together
        name, lines = f"weight{len(before)}", f"{start} + tl.arange(0, {width})[:, None]"
        number = f"tl.arange(0, {together} * BLOCK_UNITS)[None, :]"
        unit = f"(unit_block * BLOCK_UNITS + {number} // {together})"
        at = place.address("", lines, f"({first} + {number} % {together}) * {self._text.units} + {unit}")
        before.append(f"{name} = tl.load({at}, mask=({lines} < {end}) & ({unit} < {self._text.units}), other=0.0)")
        return name

    # --- the left side ---

    def _sources(self, node: fx.Node) -> list[Source]:
        for number, (enters, _) in enumerate(self._form.carried):
            if node is enters:
                self._text.meets_at_the_end = True  # the next step reads what this one hands on
                place = self._memory.of_carried(number)
                return [Source(place, self._memory.entering(number), 0, self._text.units, 0)]
        if node in self._form.part.inputs:
            place = self._memory.of_input(node)
            return [Source(place, "t", 0, place.columns, 0)]
        if node.target in SAME:
            return self._sources(operands(node)[0])
        if node.target is aten.slice.Tensor:
            return _narrowed(self._sources(operands(node)[0]), *bounds(self._plan, node))
        if node.target is aten.cat.default and node not in self._form.stored:
            return [source for one in operands(node)[0] for source in self._sources(one)]
        return [self._told(node)]

    def _told(self, node: fx.Node) -> Source:
        """A value of this step, stored for the other programs."""
        value = self._value(node)
        if not value.is_wide:
            raise Inexpressible("a product is of something that is narrower than the units")
        self._memory.store(node, value)
        self._text.meet_after(value.level)
        place, moment = self._memory.of_result(node)
        return Source(place, moment, 0, self._memory.columns(node), value.level + 1)


def bounds(plan: Plan, node: fx.Node) -> tuple[int, int]:
    """Of a slice along the columns."""
    told: list[Any] = [*operands(node)]
    told += (0, 0, None, 1)[len(told) - 1 :]
    given, dimension, start, end, step = told
    shape = plan.step.shapes[given]
    if dimension % len(shape) != len(shape) - 1 or step != 1:
        raise Inexpressible("a tensor is cut otherwise than along its columns")
    width = shape[-1]
    first, last, _ = slice(start, end).indices(width)
    return first, last


def _tiles(columns: int) -> list[tuple[int, int]]:
    """Start and width of tiles that cover so many columns; their widths are powers of two."""
    found, start = [], 0
    while start < columns:
        width = min(WIDEST, max(FEWEST, 1 << ((columns - start).bit_length() - 1)))
        found.append((start, width))
        start += width
    return found


def _narrowed(sources: Sequence[Source], start: int, end: int) -> list[Source]:
    found, before = [], 0
    for source in sources:
        first, last = max(start, before), min(end, before + source.columns)
        if first < last:
            found.append(source._replace(start=source.start + first - before, columns=last - first))
        before += source.columns
    return found
