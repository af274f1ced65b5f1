"""A loop of a plan written as one kernel.

The grid has a row of programs for each block of sequences. A program of it has some of the units, all its life: their
columns of the weights stay with it, and so does their part of the state. What a product needs is made by all programs
of the row: each stores its part, they wait for each other, and then each reads all of it. So operators are sorted by
how often programs have to wait in a step before they can run: their level.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import fx

from ..plan import Form, Plan
from ..rewriting import operands
from ..tf32 import NEAREST
from ..zones import Zone
from . import operators, products
from .everywhere import Everywhere, Recipe, find_recipe, is_normal
from .memory import Memory
from .operators import SAME, SHAPING, expression
from .products import FEWEST, Products, Sides, bounds
from .reductions import Reductions
from .text import Inexpressible, Text, Value
from .unnormalised import Unnormalised

aten = torch.ops.aten


class Writer:
    """Raises Inexpressible for a loop that cannot be a kernel."""

    def __init__(
        self, plan: Plan, form: Form, warps: int, coming: Sides = Sides.WHOLE, recipes: Mapping[int, Recipe] = {}
    ) -> None:
        """`warps`: of a program. They share the products. `coming`: how left sides of products come to it. `recipes`:
        of states that every program makes as a whole."""
        self._plan, self._form = plan, form
        self.units = _find_units(plan, form)
        self._text = text = Text(self.units)
        self._memory = memory = Memory(plan, form, text)
        self._values: dict[fx.Node, Value] = {}
        self._everywhere = Everywhere(recipes, plan, form, memory, text)
        self._products = Products(plan, form, memory, text, self._value, warps, coming, self._everywhere)
        self._reductions = Reductions(memory, text, self._value)
        self._unnormalised = Unnormalised(plan, form, memory, text, self._products, self._reductions)
        self._begin()
        for node in form.part.nodes:
            if node not in self._values and not _has_several_results(node):
                self._values[node] = self._operator(node)
        # What other programs read in the next step.
        handed_on = {form.carried[number][1] for number in self._products.handed_on}
        for node in form.part.outputs:
            if node in form.stored and node not in form.part.within:
                memory.store(node, self._value(node), node in handed_on)
        self._hand_on()
        self._hand_on_everywhere()
        self.sums: dict[fx.Node, int] = {}  # what is added up over all steps: how many columns
        for node in plan.summed if form.part is plan.back else ():
            with suppress(Inexpressible):  # then it is added up after the loop
                self._add_up(node)
        self.places, self.barriers = memory.places, text.barriers
        self.weights, self.side_bytes = self._products.weights, self._products.side_bytes

    @property
    def recipes(self) -> dict[int, Recipe]:
        """Of states that another writer may let every program make."""
        found = {}
        for number in self._products.handed_on:
            recipe = find_recipe(self._plan, self._form, self._memory, self._values, number)
            if recipe is not None and self._text.meets(recipe.level - 1):
                found[number] = recipe
        return found

    def source(self) -> str:
        """A module of Python with the function `kernel`."""
        parameters = [name for place in self.places for name in place.parameters]
        digits = [f"digits{number}" for number in range(len(self._form.carried))]
        integers = ["first", "steps", "rows", "goes_on", *digits]
        functions = operators.FUNCTIONS + NEAREST + products.FUNCTIONS
        return self._text.module(parameters, integers, functions, self._form.from_the_end)

    # --- from step to step ---

    def _begin(self) -> None:
        memory = self._memory
        for number, (enters, _) in enumerate(self._form.carried):
            moment = memory.entering(number, "first")
            loaded = memory.loaded(memory.of_carried(number), moment, "row", "column", "here")
            self._text.before.append(f"state{number} = {loaded}")
            self._values[enters] = Value([f"state{number}"], 0, True)

    def _hand_on(self) -> None:
        """What leaves a step: kept by the program, and stored for others, for the next call, or as it is wanted."""
        memory, last = self._memory, self._text.last
        zeros = "tl.zeros((BLOCK_ROWS, BLOCK_UNITS), tl.float32)"
        leaving = []
        for _, leaves in self._form.carried:
            value = Value([zeros], 0, True) if leaves is None else self._value(leaves)
            if len(value.pieces) != 1:
                raise Inexpressible("a state is not as wide as before")
            leaving.append(value.pieces[0] if value.is_wide else f"({zeros} + {value.pieces[0]})")
        last += [f"next{number} = {name}" for number, name in enumerate(leaving)]  # all of them, before any changes
        written: set[fx.Node] = set()
        for number, (enters, leaves) in enumerate(self._form.carried):
            if leaves is None or leaves in written or not memory.is_stored(leaves):
                line = memory.storing(memory.of_carried(number), memory.leaving(number), "column", f"next{number}")
                (last if number in self._products.handed_on else self._text.kept_last).append(line)
            if leaves is not None:
                written.add(leaves)
            last.append(f"state{number} = {memory.rounded(f'next{number}', self._plan.dtype(enters))}")

    def _hand_on_everywhere(self) -> None:
        self._everywhere.tell(self._values)
        own = self._values
        for number, start, width in self._everywhere.tiles:
            self._values = self._everywhere.given(number, start, width, own)
            for node in self._everywhere.recipes[number].nodes:
                if is_normal(node):
                    norm: fx.Node = operands(node)[0]
                    self._values[node] = self._reductions.normalised(norm, self._value(operands(norm)[0]))
                else:
                    self._values[node] = self._operator(node)
            leaves = self._form.carried[number][1]
            assert leaves is not None
            self._everywhere.hand_on(number, start, width, self._value(leaves))
        self._values = own

    def _add_up(self, node: fx.Node) -> None:
        """Of the sequences that a program has: then no program needs another."""
        memory, text, value = self._memory, self._text, self._summand(node)
        columns = memory.columns(node)
        if not value.is_wide or len(value.pieces) * self.units != columns:
            raise Inexpressible("a sum is not as wide as what is added up")
        place = memory.of_sum(node)
        for number, piece in enumerate(value.pieces):
            name, at = text.new_name("sum"), place.address("", "row_block", f"{number * self.units} + column")
            text.before.append(f"{name} = tl.zeros((BLOCK_ROWS, BLOCK_UNITS), tl.float32)")
            text.write(value.level, f"{name} = {name} + {piece}")
            text.after += [
                f"{name} = tl.sum(tl.where(in_rows, {name}, 0.0), 0, keep_dims=True)",
                f"{name} += tl.load({at}, mask=column < {self.units} * goes_on, other=0.0)",
                f"tl.store({at}, {name}, mask=in_units)",
            ]
        self.sums[node] = columns

    def _summand(self, node: fx.Node) -> Value:
        if node.target is aten.sum.dim_IntList:
            return self._known(operands(node)[0])
        norm, number = operands(node)
        gradient, given, _, mean, inverse = operands(norm)[:5]
        for one in (gradient, given, mean, inverse):  # also for a bias, or PyTorch's operator runs anyway
            self._known(one)
        return self._reductions.layer_norm_summand(norm, number)

    def _known(self, node: fx.Node) -> Value:
        """A value of the loop, or what is made of such for a sum."""
        if node not in self._values and self._plan.zones.of[node] is Zone.SUMS:
            for one in node.all_input_nodes:
                self._known(one)
            self._values[node] = self._operator(node)
        return self._value(node)

    # --- operators ---

    def _value(self, node: fx.Node) -> Value:
        if node not in self._values:
            if node not in self._form.part.inputs:
                raise Inexpressible(f"{node.name} is not known in the loop")
            self._values[node] = self._memory.given(node)
        return self._values[node]

    def _operator(self, node: fx.Node) -> Value:
        if node.target is aten.mm.default:
            return self._unnormalised.product(node) or self._products.product(node)
        if node.target is operator.getitem:
            return self._one_of_several(node)
        if node.target is aten.slice.Tensor:
            return self._slice(node)
        if node.target is aten.cat.default:
            return self._side_by_side(node)
        if node.op == "get_attr":
            constant: Any = getattr(self._plan.step.module, str(node.target))
            if constant.numel() != 1:
                raise Inexpressible("a constant tensor is not one number")
            return Value([_literal(constant.item())], 0, False)
        if node.target in (aten.full.default, aten.scalar_tensor.default):
            return Value([_literal(operands(node)[-1])], 0, False)
        if node.target in (aten.zeros.default, aten.ones.default):
            return Value(["0.0" if node.target is aten.zeros.default else "1.0"], 0, False)
        if node.target in SAME or node.target in SHAPING:
            return self._same(node)
        return self._reductions.over_columns(node) or self._pointwise(node)

    def _one_of_several(self, node: fx.Node) -> Value:
        source: fx.Node = operands(node)[0]
        number: int = operands(node)[1]
        if source.target is aten.native_layer_norm.default:
            return self._reductions.layer_norm(source)[number]
        if source.target is aten.native_layer_norm_backward.default:
            return self._reductions.layer_norm_backward(source).whole
        raise Inexpressible(f"{source.target} has no expression in a kernel")

    def _same(self, node: fx.Node) -> Value:
        given = operands(node)[0]
        if node.target in SHAPING and max(self._memory.columns(given), 1) != max(self._memory.columns(node), 1):
            raise Inexpressible("a tensor gets another shape")
        return self._value(given)

    def _slice(self, node: fx.Node) -> Value:
        start, end = bounds(self._plan, node)
        value = self._value(operands(node)[0])
        if not value.is_wide or start % self.units or end % self.units:
            raise Inexpressible("a piece of a tensor begins in the midst of its units")
        return Value(value.pieces[start // self.units : end // self.units], value.level, True)

    def _side_by_side(self, node: fx.Node) -> Value:
        dimension = (operands(node)[1] if len(operands(node)) > 1 else 0) % len(self._plan.step.shapes[node])
        values = [self._value(one) for one in operands(node)[0]]
        if dimension != 1 or not all(value.is_wide for value in values):
            raise Inexpressible("tensors are put together otherwise than along their units")
        return Value([piece for value in values for piece in value.pieces], max(one.level for one in values), True)

    def _pointwise(self, node: fx.Node) -> Value:
        given = list(operands(node))
        if node.target is aten._to_copy.default:
            dtype = node.kwargs["dtype"]
            assert isinstance(dtype, torch.dtype)
            form: Any = lambda name: self._memory.rounded(name, dtype)  # noqa: E731
        else:
            form = expression(node.target, dict(node.kwargs))
        if form is None:
            raise Inexpressible(f"{node.target} has no expression in a kernel")
        values = [self._value(one) if isinstance(one, fx.Node) else None for one in given]
        known = [value for value in values if value]
        level = max((value.level for value in known), default=0)
        wide = [value for value in known if value.is_wide]
        count = self._memory.columns(node) // self.units if wide else 1
        if any(len(value.pieces) != count for value in wide):
            raise Inexpressible("tensors of different widths meet")
        names = []
        for piece in range(count):
            texts = [
                _literal(one) if value is None else value.pieces[piece if value.is_wide else 0]
                for one, value in zip(given, values, strict=True)
            ]
            try:
                names.append(self._text.assign(level, node.name, form(*texts)))
            except KeyError as error:
                raise Inexpressible(f"{error.args[0]} has no expression in a kernel") from None
        return Value(names, level, bool(wide))


def written(plan: Plan, form: Form, warps: int, coming: Sides) -> Writer:
    """With as few exchanges as there can be."""
    writer = Writer(plan, form, warps, coming)
    if recipes := writer.recipes:
        with suppress(Inexpressible):
            return Writer(plan, form, warps, coming, recipes)
    return writer


def _find_units(plan: Plan, form: Form) -> int:
    if not form.part or not form.carried:
        raise Inexpressible("nothing is computed from step to step")
    if form.added:
        raise Inexpressible("something is added up over all steps")
    widths = set()
    for enters, _ in form.carried:
        if plan.step.row_dimensions[enters] != (0,) or len(plan.step.shapes[enters]) != 2:
            raise Inexpressible("a state is not one vector for each sequence")
        widths.add(plan.step.shapes[enters][1])
    if len(widths) > 1:
        raise Inexpressible("its states have different widths")
    (units,) = widths
    if units < FEWEST:
        raise Inexpressible(f"it has fewer than {FEWEST} units")
    return int(units)


def _has_several_results(node: fx.Node) -> bool:
    return node.target in (aten.native_layer_norm.default, aten.native_layer_norm_backward.default)


def _literal(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float)):
        number = float(value)
        return f'float("{number}")' if number != number or number in (float("inf"), -float("inf")) else repr(number)
    raise Inexpressible(f"an operand is a {type(value).__name__}")
