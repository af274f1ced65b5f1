"""A product of a layer norm's gradient, for which no program waits until the gradient is known.

With both sums over all columns, the gradient of `x`, which a norm was given, is

    gradient = scale * (scaled - total / n - normal * along / n)

What a norm was given has no say in its mean: `normal` and ones add up to nothing. So with weights `V`, which are `W`
without the mean of each column, the product is

    gradient @ W = scale * (scaled @ V - along / n * (normal @ V)), and normal @ V = scale * (x @ V)

Programs tell each other `scaled` together with their parts of the sums, instead of the sums first and then the
gradient. `x` is known from the pass forwards: its product is made over all steps before the loop. In float32 this is
more exact than the gradient itself, from which a large mean takes digits.
"""

from __future__ import annotations

import operator
from functools import partial

import torch
from torch import fx

from ..plan import Form, Plan
from ..rewriting import operands
from .memory import Factors, Memory
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
        sources = [self._products.told_as(left, gradient.scaled)]
        product = self._products.of_sources(node, sources, self._memory.without_means(right))
        made = self._memory.ahead(self._factors(operands(norm)[1], right), self._memory.columns(node))
        names, scale = [], gradient.scale
        for number, piece in enumerate(product.pieces):
            load = partial(self._memory.loaded, made, row="row", mask="here")
            known = self._text.given(partial(load, column=f"{number * self._text.units} + column"))
            rest = f"{gradient.along} / {gradient.columns} * ({scale} * {known})"
            names.append(self._text.assign(product.level, node.name, f"{scale} * ({piece} - {rest})"))
        return Value(names, product.level, True)

    def _is_given(self, given: fx.Node) -> bool:
        return given in self._form.part.inputs and self._plan.dtype(given) is torch.float32

    def _factors(self, given: fx.Node, right: fx.Node) -> Factors:
        """What was normalised, and the weights; or of what it is the product with the same weights, turned: these are
        multiplied with each other first, as they are much smaller."""
        if given.target is aten.mm.default:
            left, weights = operands(given)
            is_known = left in self._plan.saved and self._plan.has_rows(left)
            if is_known and right.target in _TURNING and operands(right)[0] is weights:
                return Factors(left, right, True)
        return Factors(given, right)


def _norm_of(node: fx.Node) -> fx.Node | None:
    """The operator whose result is the gradient of what a layer norm was given."""
    if node.target is operator.getitem and operands(node)[1] == 0:
        source: fx.Node = operands(node)[0]
        return source if source.target is aten.native_layer_norm_backward.default else None
    return None
