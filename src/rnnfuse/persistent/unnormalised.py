"""A product of a layer norm's gradient, for which no program waits until the gradient is known.

With both sums over all columns, the gradient of what a norm was given, and its product with weights, are

    gradient     = scale * (scaled - total / n - normal * along / n)
    gradient @ W = scale * (scaled @ W - total / n * (ones @ W) - along / n * (normal @ W))

So programs tell each other `scaled` together with their parts of the sums, instead of the sums first and then the
gradient. What was normalised is known from the pass forwards: its product is made over all steps before the loop.
"""

from __future__ import annotations

import operator
from functools import partial

import torch
from torch import fx

from ..plan import Form, Plan
from ..rewriting import operands
from .memory import Factors, Memory, Place
from .products import Products
from .reductions import Reductions
from .text import Text, Value

aten = torch.ops.aten

_TURNING = {aten.t.default, aten.transpose.int}


class Unnormalised:
    def __init__(
        self, plan: Plan, form: Form, memory: Memory, text: Text, products: Products, reductions: Reductions
    ) -> None:
        self._plan, self._form, self._memory, self._text = plan, form, memory, text
        self._products, self._reductions = products, reductions

    def product(self, node: fx.Node) -> Value | None:
        """None: it is not one of a layer norm's gradient, or what was normalised is not known to the loop."""
        left, right = operands(node)
        norm = _norm_of(left)
        if norm is None or not self._is_given(operands(norm)[1]):
            return None
        self._products.check(node)
        gradient = self._reductions.layer_norm_backward(norm)
        product = self._products.of_sources(node, [self._products.told_as(left, gradient.scaled)])
        sums = self._memory.ahead(Factors(None, right), self._memory.columns(node))
        normalised = self._memory.ahead(self._factors(operands(norm)[1], right), self._memory.columns(node))
        names, scale, n = [], gradient.scale, gradient.columns
        for number, piece in enumerate(product.pieces):
            of_ones, given = self._own(sums, number, is_constant=True), self._own(normalised, number)
            of_normal = f"{scale} * ({given} - {gradient.mean} * {of_ones})"
            rest = f"{gradient.total} / {n} * {of_ones} - {gradient.along} / {n} * ({of_normal})"
            names.append(self._text.assign(product.level, node.name, f"{scale} * ({piece} - {rest})"))
        return Value(names, product.level, True)

    def _is_given(self, given: fx.Node) -> bool:
        return given in self._form.part.inputs and self._plan.dtype(given) is torch.float32

    def _factors(self, given: fx.Node, right: fx.Node) -> Factors:
        """What was normalised, and weights; or of what it is the product with the same weights, turned: they are
        multiplied with each other first, as they are much smaller."""
        if given.target is aten.mm.default:
            left, weights = operands(given)
            is_known = left in self._plan.saved and self._plan.has_rows(left)
            if is_known and right.target in _TURNING and operands(right)[0] is weights:
                return Factors(left, right, True)
        return Factors(given, right)

    def _own(self, place: Place, number: int, is_constant: bool = False) -> str:
        column = f"{number * self._text.units} + column"
        if not is_constant:
            return self._text.given(partial(self._memory.loaded, place, row="row", column=column, mask="here"))
        loaded = self._memory.loaded(place, "", "", column, "in_units")
        self._text.before.append(f"{(name := self._text.new_name('ones'))} = {loaded}")
        return name


def _norm_of(node: fx.Node) -> fx.Node | None:
    """The operator whose result is the gradient of what a layer norm was given."""
    if node.target is operator.getitem and operands(node)[1] == 0:
        source: fx.Node = operands(node)[0]
        return source if source.target is aten.native_layer_norm_backward.default else None
    return None
