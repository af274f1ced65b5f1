"""Products of the state with weights: a program keeps its columns of the weights, and reads the state of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import fx

from ..plan import Form, Plan
from ..rewriting import operands
from .memory import Memory, Place
from .operators import SAME
from .text import Inexpressible, Text, Value

aten = torch.ops.aten

FEWEST = 16  # columns of a product, and units of a cell
COLUMNS_OF_WARP = 8  # of a product on tensor cores
WIDEST = 256
WIDEST_OF_WARP = 128  # of a side that is cut into parts and loaded in one piece: of 16 rows, 64 of a thread's registers
TILES_AHEAD = 3  # of a left side that is too large to be loaded at once: so many are under way before they are needed
#: Sums that a product is made of, until they are added up. A tensor core adds to a sum when it has finished the last
#: addition to it, so a single one would keep it waiting.
SUMS = 4

#: What is in assembler Triton would undo. `plus`: it begins a sum with another one, instead of adding them up, and they
#: are one again. `nearest`, told ONCE: it takes numbers apart in each warp, for all that it multiplies; what is not
#: pure, as far as it knows, happens where it is written, once. `held`: it brings float32 numbers to the threads that
#: multiply them right after their load, and no load begins before the last has ended.
FUNCTIONS = """
@triton.jit
def plus(x, y):
    return tl.inline_asm_elementwise("add.f32 $0, $1, $2;", "=f,f,f", [x, y], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def product(side, weight, total, PRECISION: tl.constexpr):
    if PRECISION == "tf32x3" and side.dtype == tl.float32:
        near, near_weight = nearest(side, False), nearest(weight, False)
        total = tl.dot(side - near, near_weight, total, input_precision="tf32")
        total = tl.dot(near, weight - near_weight, total, input_precision="tf32")
        total = tl.dot(near, near_weight, total, input_precision="tf32")
    else:
        total = tl.dot(side, weight, total, input_precision=PRECISION)
    return total


@triton.jit
def held(side):
    bits = side.to(tl.int32, bitcast=True)
    bits = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [bits], dtype=tl.int32, is_pure=False, pack=1)
    return bits.to(tl.float32, bitcast=True)
"""


class Sides(Enum):
    """How left sides of products come to a program: with less room, in more instructions."""

    IN_PARTS = 0  # the next parts are loaded while one is multiplied
    WHOLE = 1  # all of a side is under way at once
    AS_TWO = 2  # so, and float32 numbers are taken apart once for all warps


class Source(NamedTuple):
    """Some columns of the left side of a product, as they lie in memory."""

    place: Place
    moment: str
    start: int
    columns: int
    level: int  # from which on all programs know it


class Side(NamedTuple):
    """Some columns of a source, in parts; `before` it there are so many columns of other sources."""

    source: Source
    start: int
    width: int
    parts: int
    before: int


class Products:
    def __init__(
        self,
        plan: Plan,
        form: Form,
        memory: Memory,
        text: Text,
        value: Callable[[fx.Node], Value],
        warps: int,
        coming: Sides,
    ) -> None:
        self._plan, self._form, self._memory, self._text, self._value = plan, form, memory, text, value
        self._warps, self._coming = warps, coming
        self._sides: dict[tuple[Any, ...], str] = {}
        self._halved: dict[str, tuple[str, str]] = {}  # loaded sides: the nearest numbers, and the rest
        self.handed_on: set[int] = set()  # what is carried, of which programs read all in the next step
        self.weights: Counter[torch.dtype] = Counter()  # that a program holds for each of its units
        self.side_bytes = 0  # of the largest left side, for each sequence

    def product(self, node: fx.Node) -> Value:
        left, _ = operands(node)
        self.check(node)
        return self.of_sources(node, self._sources(left))

    def check(self, node: fx.Node) -> None:
        right, columns = operands(node)[1], self._memory.columns(node)
        if not self._memory.is_constant(right) or self._plan.step.row_dimensions[right] or columns % self._text.units:
            raise Inexpressible("a product is not one of something with rows and of weights for all units")

    def of_sources(self, node: fx.Node, sources: Sequence[Source], weights: Place | None = None) -> Value:
        """The product with another left side of the same type, and perhaps with other weights."""
        left, right = operands(node)
        units, columns = self._text.units, self._memory.columns(node)
        level = max(source.level for source in sources)
        weights = weights or self._memory.of_input(right)
        self.side_bytes = max(self.side_bytes, sum(one.columns for one in sources) * self._plan.dtype(left).itemsize)
        ahead = TILES_AHEAD if self._coming is Sides.IN_PARTS else 0
        is_float32 = self._plan.dtype(left) is torch.float32
        names: list[str] = []
        while len(names) < columns // units:
            together = 1 << ((columns // units - len(names)).bit_length() - 1)  # a tile's width is a power of two
            # Where there are too few columns for all warps, the left side is cut into parts, whose products are added:
            # each warp has parts of its own, and none reads what another reads.
            parts = 1 if together * FEWEST >= COLUMNS_OF_WARP * self._warps else self._warps
            as_two = self._coming is Sides.AS_TWO and parts == 1 and is_float32
            sums, sides = [""] * SUMS, self._tiled(sources, parts)
            for number, side in enumerate(sides):
                loaded, *_ = [self._loaded(one, level) for one in sides[number : number + 1 + ahead]]
                if ahead and is_float32:
                    loaded = f"held({loaded})"
                weight = self._weight(weights, len(names), together, side)
                if as_two:
                    sums[:3] = self._multiplied_as_two(loaded, weight, sums[:3], level)
                elif side.parts > parts:
                    sums.append(self._multiplied_at_once(loaded, weight, side, level))
                else:
                    sums[number % SUMS] = self._multiplied(loaded, weight, sums[number % SUMS], level)
            total = reduce(lambda one, other: self._plus(one, other, level), filter(None, sums))
            if parts > 1:
                total = self._added_up(total, together, parts, level)
            names += self._apart(total, together, level)
        return Value(names, level, True)

    def _multiplied(self, side: str, weight: str, total: str, level: int) -> str:
        return self._text.assign(level, "product", f"product({side}, {weight}, {total or None}, PRECISION)")

    def _multiplied_at_once(self, loaded: str, weight: str, side: Side, level: int) -> str:
        """Each warp adds up the products of its parts."""
        name = self._multiplied(loaded, weight, "", level)
        shape = f"({side.parts // self._warps}, {self._warps}, BLOCK_ROWS, {name}.shape[2])"
        return self._text.assign(level, "product", f"tl.sum(tl.reshape({name}, {shape}), 0)")

    def _multiplied_as_two(self, side: str, weight: str, totals: Sequence[str], level: int) -> list[str]:
        """Each float32 number taken apart once for all warps, and each product a sum of its own. Without the product of
        both rests, which is smaller than a float32 can tell."""
        near_weight, weight_rest = self._as_two(weight, self._text.before.append)
        near, rest = self._as_two(side, lambda line: self._text.write(level, line))
        pairs = ((rest, near_weight), (near, weight_rest), (near, near_weight))
        return [
            self._text.assign(level, "product", f"tl.dot({one}, {other}, {total or None}, input_precision='tf32')")
            for (one, other), total in zip(pairs, totals, strict=True)
        ]

    def _plus(self, one: str, other: str, level: int) -> str:
        return self._text.assign(level, "product", f"plus({one}, {other})")

    def _as_two(self, name: str, write: Callable[[str], None]) -> tuple[str, str]:
        if name not in self._halved:
            self._halved[name] = near, rest = f"{name}_near", f"{name}_rest"
            write(f"{near} = nearest({name}, True)")
            write(f"{rest} = {name} - {near}")
        return self._halved[name]

    def _added_up(self, name: str, together: int, parts: int, level: int) -> str:
        """The sum of all parts, in pairs: `tl.sum` over the first dimension takes far longer."""
        name = self._text.assign(level, "product", f"tl.permute({name}, (1, 2, 0))")
        while parts > 1:
            even, odd = self._halves(name, f"{together} * BLOCK_UNITS", parts, level)
            name = self._text.assign(level, "product", f"{even} + {odd}")
            parts //= 2
        return name

    def _apart(self, name: str, together: int, level: int) -> list[str]:
        """The pieces of a tile that has those of each unit side by side."""
        if together == 1:
            return [name]
        halves = self._halves(name, "BLOCK_UNITS", together, level)
        pairs = [self._apart(half, together // 2, level) for half in halves]
        return [one for pair in zip(*pairs, strict=True) for one in pair]

    def _halves(self, name: str, columns: str, count: int, level: int) -> tuple[str, str]:
        """Of `count` values that stand side by side in each column, those with even and those with odd numbers."""
        inner = f"{count // 2}, 2" if count > 2 else "2"
        even, odd = self._text.new_name("even"), self._text.new_name("odd")
        self._text.write(level, f"{even}, {odd} = tl.split(tl.reshape({name}, (BLOCK_ROWS, {columns}, {inner})))")
        return even, odd

    def _loaded(self, side: Side, level: int) -> str:
        source, start, width, parts, _ = side
        key = (source._replace(level=level), start, width, parts)
        if key not in self._sides:
            place, columns = source.place, _along(width, parts, "[None, :]")
            row, in_rows = ("row", "in_rows") if parts == 1 else ("row[None]", "in_rows[None]")
            inside = f"{in_rows} & ({columns} < {source.columns - start})"
            at = place.address(source.moment, row, f"{source.start + start} + {columns}")
            # Not from the first cache, which knows nothing of what other programs have written.
            load = f'tl.load({at}, mask={inside}, other=0.0, cache_modifier=".cg")'
            write = self._text.assign if self._coming is Sides.IN_PARTS else self._text.load
            self._sides[key] = write(level, "side", load)
        return self._sides[key]

    def _weight(self, place: Place, first: int, together: int, side: Side) -> str:
        """The lines of the weights that belong to a side, for a few pieces of each unit, which stand side by side."""
        before, parts = self._text.before, side.parts
        self.weights[self._plan.dtype(place.node)] += side.width * together  # type: ignore[arg-type]
        name = f"weight{len(before)}"
        lines = f"({side.before + side.start} + {_along(side.width, parts, '[:, None]')})"
        number = f"tl.arange(0, {together} * BLOCK_UNITS)[None, {'None, ' if parts > 1 else ''}:]"
        unit = f"(unit_block * BLOCK_UNITS + {number} // {together})"
        at = place.address("", lines, f"({first} + {number} % {together}) * {self._text.units} + {unit}")
        mask = f"({lines} < {side.before + side.source.columns}) & ({unit} < {self._text.units})"
        before.append(f"{name} = tl.load({at}, mask={mask}, other=0.0)")
        return name

    # --- the left side ---

    def _tiled(self, sources: Sequence[Source], parts: int) -> list[Side]:
        """The sources one after the other, in tiles. Tiles that are loaded at once have several parts for each warp."""
        at_once = parts > 1 and self._coming is not Sides.IN_PARTS
        widest = WIDEST_OF_WARP * parts if at_once else WIDEST
        found, before = [], 0
        for source in sources:
            for start, width in _tiles(source.columns, FEWEST * parts, widest):
                several = max(parts, min(SUMS * parts, width // FEWEST)) if at_once else parts
                found.append(Side(source, start, width, several, before))
            before += source.columns
        return found

    def _sources(self, node: fx.Node) -> list[Source]:
        for number, (enters, _) in enumerate(self._form.carried):
            if node is enters:
                self._text.meets_at_the_end = True  # the next step reads what this one hands on
                self.handed_on.add(number)
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
        self._memory.store(node, value, True)
        self._text.meet_after(value.level)
        place, moment = self._memory.of_result(node)
        return Source(place, moment, 0, self._memory.columns(node), value.level + 1)

    def told_as(self, node: fx.Node, value: Value) -> Source:
        """The same of something as wide as a node, in memory of its own."""
        columns = self._memory.columns(node)
        place = self._memory.for_numbers(("instead of", node), columns)
        self._memory.write(place, "parity", value, self._text.write)
        self._text.meet_after(value.level)
        return Source(place, "parity", 0, columns, value.level + 1)


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


def _along(width: int, parts: int, place: str) -> str:
    """So many numbers in a tile of two dimensions, at this place; in parts, which are a dimension of their own."""
    if parts == 1:
        return f"tl.arange(0, {width}){place}"
    each = width // parts
    return f"(tl.arange(0, {parts})[:, None, None] * {each} + tl.arange(0, {each})[None, {place[1:]})"


def _tiles(columns: int, narrowest: int, widest: int) -> list[tuple[int, int]]:
    """Start and width of tiles that cover so many columns; their widths are powers of two."""
    found, start = [], 0
    while start < columns:
        width = min(widest, max(narrowest, 1 << ((columns - start).bit_length() - 1)))
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
