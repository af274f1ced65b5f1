"""Fewer and larger products: the same numbers from one product instead of several.

Gradients of weights get the gradient of what was made on their right, so that those of one input have the same left
side. Products with the same left side become one product with all their right sides side by side. A sum of products
becomes one product of everything side by side. Both only where the products run at the same time anyway. What lies side
by side then is also added up over sequences at once: the gradients of biases.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import fx

from .rewriting import operands
from .tracing import Step
from .zones import Zone, Zones

aten = torch.ops.aten


def pack_products(step: Step) -> tuple[Step, list[str]]:
    """The step with its graph rewritten, and what was packed."""
    _turn_gradients(step, Zones(step))
    step = step.tidied()
    said = _pack_shared_sides(step, Zones(step))
    step = step.tidied()
    said += _pack_sums(step, Zones(step))
    step = step.tidied()
    said += _pack_reductions(step)
    return step.tidied(), said


def _turn_gradients(step: Step, zones: Zones) -> None:
    """As nn.Linear has them they are the other way round: then none of them share a left side."""
    rows = step.row_dimensions
    for node in list(step.graph.nodes):
        if node.target is aten.mm.default:
            left, right = operands(node)
            of_gradients = zones.depends_on_gradient(left) and not zones.depends_on_gradient(right)
            if of_gradients and (rows[left], rows[right]) == ((1,), (0,)):
                writer = _Writer(step, node)
                product = writer.product(writer.turned(right), writer.turned(left))
                node.replace_all_uses_with(writer.turned(product))


def _pack_shared_sides(step: Step, zones: Zones) -> list[str]:
    groups: dict[tuple[Any, ...], list[fx.Node]] = {}
    for node in step.graph.nodes:
        if node.target is aten.mm.default:
            left, right = operands(node)
            same = (left, zones.of[node], zones.of[right] is Zone.ONCE, step.row_dimensions[right])
            groups.setdefault(same, []).append(node)
    said = []
    for products in groups.values():
        if len(products) > 1 and not any(_needs(product, products) for product in products):
            products = _in_known_order(step, products, 1)
            left = operands(products[0])[0]
            rights = [operands(product)[1] for product in products]
            writer = _Writer(step, products[-1])
            wide = writer.product(left, writer.side_by_side(rights, 1))
            start = 0
            for product in products:
                end = start + step.shapes[product][1]
                product.replace_all_uses_with(writer.piece(wide, 1, start, end))
                start = end
            said.append(f"{len(products)} products of {left.name} became one")
    return said


def _pack_sums(step: Step, zones: Zones) -> list[str]:
    said = []
    for node in reversed(list(step.graph.nodes)):
        if node.target is not aten.add.Tensor or node.kwargs or any(_is_sum(user) for user in node.users):
            continue
        terms = _terms(node)
        packed = [one for one in terms if _is_product_with_parameters(_before_widening(one), zones)]
        products = [_before_widening(one) for one in packed]
        alike = {(zones.of[product], term.meta["val"].dtype) for product, term in zip(products, packed, strict=True)}
        if len(products) < 2 or len(alike) > 1 or len(products) != len(set(products)):
            continue
        products = _in_known_order(step, products, 0)
        writer = _Writer(step, node)
        total = writer.product(
            writer.side_by_side([operands(one)[0] for one in products], 1),
            writer.below_each_other([operands(one)[1] for one in products]),
        )
        if packed[0].meta["val"].dtype != total.meta["val"].dtype:
            total = writer.widened(total, packed[0].meta["val"].dtype)
        for term in terms:
            if term not in packed:
                total = writer.sum(total, term, like=node)
        node.replace_all_uses_with(total)
        said.append(f"a sum of {len(products)} products became one")
    return said


def _pack_reductions(step: Step) -> list[str]:
    said = []
    for whole in list(step.graph.nodes):
        if not _is_side_by_side(whole) or step.row_dimensions[whole] != (0,):
            continue
        parts = list(operands(whole)[0])
        for keeps in (True, False):
            sums = [(part, user) for part in dict.fromkeys(parts) for user in part.users if _adds_up_rows(user, keeps)]
            users = [user for _, user in sums]
            if len(users) < 2 or _needs(whole, users):
                continue
            writer = _Writer(step, users[-1])
            total = writer.over_rows(whole, keeps)
            starts = list(accumulate([step.shapes[part][1] for part in parts], initial=0))
            for part, user in sums:
                k = parts.index(part)
                user.replace_all_uses_with(writer.piece(total, int(keeps), starts[k], starts[k + 1]))
            said.append(f"{len(users)} sums over sequences became one")
    return said


def _adds_up_rows(node: fx.Node, keeps: bool) -> bool:
    if node.target is not aten.sum.dim_IntList or node.kwargs:
        return False
    _, dimensions, *rest = operands(node)
    return list(dimensions) == [0] and rest == [True] * keeps


def _in_known_order(step: Step, products: list[fx.Node], side: int) -> list[fx.Node]:
    """Products in the order in which their left or right sides are side by side already, or what these are multiplied
    by, if they are.

    So the gradients of a step's gates are put together once, for the product in the loop and for those after it, and in
    the order of the gates' weights, which are put together once then, too.
    """
    sides = [operands(one)[side] for one in products]
    every = [list(operands(node)[0]) for node in step.graph.nodes if _is_side_by_side(node)]
    for known in every:
        if _are_the_same(known, sides):
            return [products[sides.index(one)] for one in known]
    for known in every:
        weights = [next((one for one in known if one in _multiplied_by(of)), None) for of in sides]
        if _are_the_same(known, weights):
            return [products[weights.index(one)] for one in known]
    return products


def _are_the_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """In whatever order, and each once."""
    return len(some) == len(set(some)) == len(others) and set(some) == set(others)


def _multiplied_by(left: fx.Node) -> set[fx.Node | None]:
    """What is the right side of a product with this, turned: as the gradient of a product has the weights."""
    return {_unturned(operands(user)[1]) for user in left.users if _is_product_of(user, left)}


def _is_product_of(node: fx.Node, left: fx.Node) -> bool:
    return node.target is aten.mm.default and operands(node)[0] is left


def _unturned(node: fx.Node) -> fx.Node | None:
    """What a matrix was before it was turned; None if it was not."""
    if node.target is aten.t.default or (node.target is aten.transpose.int and set(operands(node)[1:]) == {0, 1}):
        found: fx.Node = operands(node)[0]
        return found
    return None


def _is_side_by_side(node: fx.Node) -> bool:
    return node.target is aten.cat.default and tuple(operands(node)[1:]) == (1,)


def _is_sum(node: fx.Node) -> bool:
    return node.target is aten.add.Tensor and not node.kwargs


def _terms(node: Any) -> list[Any]:
    """What a sum adds up: sums that are used nowhere else are taken apart as well."""
    found: list[Any] = []
    for argument in operands(node):
        if isinstance(argument, fx.Node) and _is_sum(argument) and len(argument.users) == 1:
            found += _terms(argument)
        else:
            found.append(argument)
    return found


def _before_widening(node: Any) -> Any:
    """Of a product that autocast has turned into float32 before it is added: the product, which is then added up in
    float32 and rounded once instead of once for each."""
    if not isinstance(node, fx.Node) or node.target is not aten._to_copy.default or len(node.users) != 1:
        return node
    source: fx.Node = operands(node)[0]
    before, after = source.meta["val"], node.meta["val"]
    widens = torch.promote_types(before.dtype, after.dtype) is after.dtype
    return source if widens and before.device == after.device else node


def _is_product_with_parameters(node: Any, zones: Zones) -> bool:
    return (
        isinstance(node, fx.Node)
        and node.target is aten.mm.default
        and len(node.users) == 1
        and zones.of[operands(node)[1]] is Zone.ONCE
    )


def _needs(node: fx.Node, others: Sequence[fx.Node]) -> bool:
    """Whether a node is made from one of the others."""
    waiting, seen = list(node.all_input_nodes), set()
    while waiting:
        one = waiting.pop()
        if one in others:
            return True
        if one not in seen:
            seen.add(one)
            waiting += one.all_input_nodes
    return False


class _Writer:
    """Writes new operators into a step's graph, with what the analysis must know about them."""

    def __init__(self, step: Step, before: fx.Node) -> None:
        self._step, self._before = step, before

    def product(self, left: fx.Node, right: fx.Node) -> fx.Node:
        rows = self._step.row_dimensions
        found = tuple(k for k, one in ((0, 0 in rows[left]), (1, 1 in rows[right])) if one)
        return self._write(aten.mm.default, (left, right), found)

    def turned(self, node: fx.Node) -> fx.Node:
        turned = tuple(1 - k for k in self._step.row_dimensions[node])
        return _unturned(node) or self._write(aten.t.default, (node,), turned)

    def side_by_side(self, parts: Sequence[fx.Node], dimension: int) -> fx.Node:
        return self._write(aten.cat.default, (list(parts), dimension), self._step.row_dimensions[parts[0]])

    def below_each_other(self, parts: Sequence[fx.Node]) -> fx.Node:
        """What is turned and known side by side is turned as a whole."""
        sources = [_unturned(part) for part in parts]
        for node in self._step.graph.nodes:
            if _is_side_by_side(node) and list(operands(node)[0]) == sources:
                return self.turned(node)
        return self.side_by_side(parts, 0)

    def piece(self, whole: fx.Node, dimension: int, start: int, end: int) -> fx.Node:
        rows = self._step.row_dimensions[whole]
        return self._write(aten.slice.Tensor, (whole, dimension, start, end), rows)

    def sum(self, left: fx.Node, right: Any, like: fx.Node) -> fx.Node:
        return self._write(aten.add.Tensor, (left, right), self._step.row_dimensions[like])

    def widened(self, node: fx.Node, dtype: torch.dtype) -> fx.Node:
        return self._write(aten._to_copy.default, (node,), self._step.row_dimensions[node], dtype=dtype)

    def over_rows(self, whole: fx.Node, keeps: bool) -> fx.Node:
        return self._write(aten.sum.dim_IntList, (whole, [0], *[True] * keeps), ())

    def _write(self, target: Any, arguments: tuple[Any, ...], rows: tuple[int, ...], **more: Any) -> fx.Node:
        with self._step.graph.inserting_before(self._before):
            node = self._step.graph.call_function(target, arguments, more)
        values = fx.node.map_arg(arguments, lambda one: one.meta["val"])
        node.meta["val"] = target(*values, **more)
        self._step.shapes[node] = tuple(node.meta["val"].shape)
        self._step.row_dimensions[node] = rows
        return node
