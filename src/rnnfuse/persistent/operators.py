"""Pointwise operators of PyTorch as expressions of Triton, on tiles of float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten

#: Functions that the expressions call. Triton's own hyperbolic tangent is not in its language.
FUNCTIONS = """
@triton.jit
def tanh(x):
    square = x * x
    small = x * (1 + square * (-1 / 3 + square * (2 / 15 + square * (-17 / 315))))
    # Of the absolute value: the exponential of a large number is infinite, and the quotient still right.
    large = 1 - 2 / (tl.exp(2 * tl.abs(x)) + 1)
    return tl.where(tl.abs(x) < 0.15, small, tl.where(x < 0, -large, large))


@triton.jit
def log1p(x):
    # The error of 1 + x is made good by the quotient.
    whole = 1 + x
    return tl.where(whole == 1, x, tl.log(whole) * (x / tl.where(whole == 1, 1.0, whole - 1)))


@triton.jit
def larger(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def smaller(x, y):
    return tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)
"""

#: By the operator: the expression, whose arguments are in order.
_EXPRESSIONS: dict[Any, str] = {
    aten.sub.Tensor: "({0} - {1})",
    aten.sub.Scalar: "({0} - {1})",
    aten.mul.Tensor: "({0} * {1})",
    aten.mul.Scalar: "({0} * {1})",
    aten.div.Tensor: "({0} / {1})",
    aten.div.Scalar: "({0} / {1})",
    aten.neg.default: "(-{0})",
    aten.reciprocal.default: "(1.0 / {0})",
    aten.sigmoid.default: "tl.sigmoid({0})",
    aten.tanh.default: "tanh({0})",
    aten.exp.default: "tl.exp({0})",
    aten.log.default: "tl.log({0})",
    aten.log1p.default: "log1p({0})",
    aten.sqrt.default: "tl.sqrt({0})",
    aten.rsqrt.default: "tl.rsqrt({0})",
    aten.abs.default: "tl.abs({0})",
    aten.sin.default: "tl.sin({0})",
    aten.cos.default: "tl.cos({0})",
    aten.erf.default: "tl.erf({0})",
    aten.relu.default: "larger({0}, 0.0)",
    aten.square.default: "({0} * {0})",
    aten.maximum.default: "larger({0}, {1})",
    aten.minimum.default: "smaller({0}, {1})",
    aten.clamp_min.default: "larger({0}, {1})",
    aten.clamp_max.default: "smaller({0}, {1})",
    aten.where.self: "tl.where({0}, {1}, {2})",
    aten.masked_fill.Scalar: "tl.where({1}, {2}, {0})",
    aten.logical_not.default: "({0} == 0)",
    aten.bitwise_not.default: "({0} == 0)",
    aten.logical_and.default: "(({0} != 0) & ({1} != 0))",
    aten.bitwise_and.Tensor: "(({0} != 0) & ({1} != 0))",
    aten.logical_or.default: "(({0} != 0) | ({1} != 0))",
    aten.bitwise_or.Tensor: "(({0} != 0) | ({1} != 0))",
    **{
        getattr(getattr(aten, name), overload): f"({{0}} {sign} {{1}})"
        for name, sign in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="), ("eq", "=="), ("ne", "!="))
        for overload in ("Tensor", "Scalar")
    },
}

#: What changes neither a value nor which of its tiles is where.
SAME = {
    aten.clone.default,
    aten.alias.default,
    aten.detach.default,
    aten.expand.default,
    aten.unsqueeze.default,
    aten.squeeze.dim,
    aten.lift_fresh_copy.default,
}

#: The same, where as many columns come out as go in.
SHAPING = {aten.view.default, aten.reshape.default, aten._unsafe_view.default}


def expression(target: Any, keywords: dict[str, Any]) -> Callable[..., str] | None:
    """A function from the operands' expressions to the result's; None: there is none for this operator."""
    if target in (aten.add.Tensor, aten.add.Scalar):
        scale = keywords.get("alpha", 1)
        return lambda a, b, *_: f"({a} + {b})" if scale == 1 else f"({a} + {scale!r} * {b})"
    if target is aten.clamp.default:
        return _clamped
    if target is aten.pow.Tensor_Scalar:
        return _power
    if keywords:
        return None
    form = _EXPRESSIONS.get(target)
    return form.format if form else None


def _clamped(a: str, lowest: str = "None", highest: str = "None") -> str:
    found = a if lowest == "None" else f"larger({a}, {lowest})"
    return found if highest == "None" else f"smaller({found}, {highest})"


def _power(a: str, exponent: str) -> str:
    known = {"2.0": "({0} * {0})", "3.0": "({0} * {0} * {0})", "0.5": "tl.sqrt({0})", "1.0": "{0}"}
    if exponent not in known:
        raise KeyError(f"a power of {exponent}")
    return known[exponent].format(a)
