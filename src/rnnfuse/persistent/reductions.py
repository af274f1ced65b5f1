"""Numbers of a whole row, such as a layer norm's mean: programs store those of their units, and put them together.

Means and variances are put together from those of the parts, so that nothing large is subtracted from something large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from ..rewriting import operands
from .memory import Memory, storing_narrow
from .text import Inexpressible, Text, Value

aten = torch.ops.aten

NARROWEST = 8  # units of a program
WIDTH = 16  # of a tile of programs' numbers: like that of their units, so that Triton lays out both alike

_NEUTRAL = {"sum": "0.0", "max": 'float("-inf")'}

#: By the operator: how a program puts its columns together, and how the results of programs are.
_OVER_COLUMNS = {aten.sum.dim_IntList: "sum", aten.mean.dim: "sum", aten.amax.default: "max"}


class Gradient(NamedTuple):
    """Of what a layer norm was given: `scale * (scaled - total / columns - normal * along / columns)`."""

    scaled: Value  # the gradient of what was normalised, with the weight
    columns: int
    scale: str  # the inverse of the standard deviation
    along: str  # the sum of `scaled * normal` over all columns; from the next level on
    whole: Value


class Reductions:
    def __init__(self, memory: Memory, text: Text, value: Callable[[fx.Node], Value]) -> None:
        self._memory, self._text, self._value = memory, text, value
        self._most = -(-text.units // NARROWEST)  # programs that share sequences
        self._norms: dict[fx.Node, list[Value]] = {}
        self._gradients: dict[fx.Node, Gradient] = {}

    def over_columns(self, node: fx.Node) -> Value | None:
        """A sum, a mean or a maximum over all columns; None: another operator."""
        if node.target not in _OVER_COLUMNS:
            return None
        given, dimensions, *_ = operands(node)
        dimensions = [dimensions] if isinstance(dimensions, int) else list(dimensions)
        value = self._value(given)
        if dimensions not in ([1], [-1]) or not value.is_wide:
            raise Inexpressible("something is added up otherwise than over all units")
        how = _OVER_COLUMNS[node.target]
        own = self._own(value.level, value.pieces, how)
        (total,) = self._exchanged(node, value.level, [own], how)
        if node.target is aten.mean.dim:
            total = self._text.assign(value.level + 1, "mean", f"{total} / {self._memory.columns(given)}")
        return Value([total], value.level + 1, False)

    def layer_norm(self, node: fx.Node) -> list[Value]:
        """The normalised values, the mean, and the inverse of the standard deviation."""
        if node not in self._norms:
            self._norms[node] = self._forwards(node)
        return self._norms[node]

    def _forwards(self, node: fx.Node) -> list[Value]:
        given, _, weight, bias, smallest = operands(node)
        value, text = self._value(given), self._text
        level, columns, pieces = value.level, self._memory.columns(given), len(value.pieces)
        own_columns = f"{pieces}.0 * tl.minimum({text.units} - unit_block * BLOCK_UNITS, BLOCK_UNITS)"
        count = text.assign(level, "count", own_columns)
        mean = text.assign(level, "mean", f"{self._own(level, value.pieces, 'sum')} / {count}")
        squares = self._own(level, [f"({one} - {mean}) * ({one} - {mean})" for one in value.pieces], "sum")
        means, deviations = self._loaded(node, level, [mean, squares])
        level += 1
        counts = []
        for tile in range(len(means)):
            left = f"{text.units} - ({tile * WIDTH} + tl.arange(0, {WIDTH})[None, :]) * BLOCK_UNITS"
            count = f"{pieces}.0 * tl.minimum(tl.maximum({left}, 0), BLOCK_UNITS)"
            counts.append(text.assign(level, "counts", count))
        added = " + ".join(f"{one} * {count}" for one, count in zip(means, counts, strict=True))
        mean = text.assign(level, "mean", f"tl.sum({added}, 1, keep_dims=True) / {columns}")
        spread = [
            f"tl.where({count} > 0, {deviation} + {count} * ({one} - {mean}) * ({one} - {mean}), 0.0)"
            for one, deviation, count in zip(means, deviations, counts, strict=True)
        ]
        variance = text.assign(level, "variance", f"tl.sum({' + '.join(spread)}, 1, keep_dims=True) / {columns}")
        inverse = text.assign(level, "inverse", f"tl.rsqrt({variance} + {float(smallest)!r})")
        normal = self._normal(level, value, mean, inverse)
        found = self._affine(level, normal, weight, bias)
        return [Value(found, level, True), Value([mean], level, False), Value([inverse], level, False)]

    def _affine(self, level: int, pieces: list[str], weight: fx.Node | None, bias: fx.Node | None) -> list[str]:
        if weight is not None:
            gains = self._value(weight).pieces
            pieces = [self._text.assign(level, "scaled", f"{a} * {b}") for a, b in zip(pieces, gains, strict=True)]
        if bias is not None:
            shifts = self._value(bias).pieces
            pieces = [self._text.assign(level, "shifted", f"{a} + {b}") for a, b in zip(pieces, shifts, strict=True)]
        return pieces

    def layer_norm_backward(self, node: fx.Node) -> Gradient:
        """Without the gradients of its parameters, which are added up elsewhere."""
        if node not in self._gradients:
            self._gradients[node] = self._backwards(node)
        return self._gradients[node]

    def _backwards(self, node: fx.Node) -> Gradient:
        gradient, given, _, mean, inverse, weight, _, wanted = operands(node)
        if list(wanted) != [True, False, False]:
            raise Inexpressible("gradients of a layer norm's parameters are added up over the steps")
        values = [self._value(one) for one in (gradient, given, mean, inverse)]
        level, columns, text = max(value.level for value in values), self._memory.columns(given), self._text
        (middle,), (scale,) = values[2].pieces, values[3].pieces
        normal = self._normal(level, values[1], middle, scale)
        scaled = self._affine(level, values[0].pieces, weight, None)
        products = [f"{a} * {b}" for a, b in zip(scaled, normal, strict=True)]
        own = [self._own(level, scaled, "sum"), self._own(level, products, "sum")]
        total, along = self._exchanged(node, level, own, "sum")
        found = [
            text.assign(level + 1, "gradient", f"{scale} * ({a} - {total} / {columns} - {b} * ({along} / {columns}))")
            for a, b in zip(scaled, normal, strict=True)
        ]
        whole = Value(found, level + 1, True)
        return Gradient(Value(scaled, level, True), columns, scale, along, whole)

    def layer_norm_summand(self, node: fx.Node, number: int) -> Value:
        """What the gradient of a layer norm's weight (1) or bias (2) is the sum of, over all sequences and steps."""
        gradient, given, _, mean, inverse = operands(node)[:5]
        values = [self._value(one) for one in (gradient, given, mean, inverse)]
        if number == 2:
            return values[0]
        level, (middle,), (scale,) = max(value.level for value in values), values[2].pieces, values[3].pieces
        pairs = zip(values[0].pieces, self._normal(level, values[1], middle, scale), strict=True)
        return Value([self._text.assign(level, "summand", f"{a} * {b}") for a, b in pairs], level, True)

    def _normal(self, level: int, given: Value, mean: str, inverse: str) -> list[str]:
        """Of what is normalised, before weight and bias."""
        return [self._text.assign(level, "normal", f"({one} - {mean}) * {inverse}") for one in given.pieces]

    # --- what programs tell each other ---

    def _own(self, level: int, pieces: Sequence[str], how: str) -> str:
        """A number for each row, of this program's columns."""
        inside = f"tl.where(in_units, {_joined(pieces, how)}, {_NEUTRAL[how]})"
        return self._text.assign(level, "own", f"tl.{how}({inside}, 1, keep_dims=True)")

    def _exchanged(self, node: fx.Node, level: int, own: Sequence[str], how: str) -> list[str]:
        return [
            self._text.assign(level + 1, "total", f"tl.{how}({_joined(tiles, how)}, 1, keep_dims=True)")
            for tiles in self._loaded(node, level, own, _NEUTRAL[how])
        ]

    def _loaded(self, node: Any, level: int, own: Sequence[str], neutral: str = "0.0") -> list[list[str]]:
        """For each number that programs have for a row, tiles with those of all programs, at the next level."""
        place = self._memory.for_numbers(node, self._most * len(own))
        text, names = self._text, []
        for number, name in enumerate(own):
            at = place.address("parity", "row", f"{number * self._most} + unit_block")
            text.write(level, storing_narrow(place, at, name, "in_rows"))
            tiles = []
            for first in range(0, self._most, WIDTH):
                programs = f"({first} + tl.arange(0, {WIDTH})[None, :])"
                at = place.address("parity", "row", f"{number * self._most} + {programs}")
                mask = f"in_rows & ({programs} < PROGRAMS)"
                load = f'tl.load({at}, mask={mask}, other={neutral}, cache_modifier=".cg")'
                tiles.append(text.load(level + 1, "numbers", load))
            names.append(tiles)
        text.meet_after(level)
        return names


def _joined(pieces: Sequence[str], how: str) -> str:
    """Over several tiles, element by element, which needs no other thread."""
    joined = pieces[0]
    for piece in pieces[1:]:
        joined = f"({joined}) + ({piece})" if how == "sum" else f"tl.maximum({joined}, {piece})"
    return joined
