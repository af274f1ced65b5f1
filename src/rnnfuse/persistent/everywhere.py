"""States that every program makes as a whole, for the product of the next step.

A state that depends on numbers of a whole row, such as that of a norm of an LSTM's cell, is known two exchanges after
what it is made from: one for the numbers, and one for the state. But pointwise operators cost less than an exchange. So
programs tell each other what the state is made from together with their parts of the numbers, and each makes all of it.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import fx

from ..plan import Form, Plan
from ..rewriting import operands
from .memory import Memory, Place
from .operators import SAME, expression
from .text import Text, Value

aten = torch.ops.aten

MOST_TOLD = 2  # values that a state is made from: of more there would be more to load than an exchange takes


class Recipe(NamedTuple):
    """How a state that leaves a step is made of what all programs know."""

    level: int  # at which they know the numbers of rows that it is made from
    nodes: list[fx.Node]  # the operators, in order
    told: list[fx.Node]  # what programs tell each other, at the level before
    constants: list[fx.Node]  # the same for all rows, and as wide as the state
    narrow: list[fx.Node]  # numbers of a row, or numbers


class Everywhere:
    def __init__(self, recipes: Mapping[int, Recipe], plan: Plan, form: Form, memory: Memory, text: Text) -> None:
        """`recipes`: by the number of what is carried."""
        self.recipes = recipes
        self._plan, self._form, self._memory, self._text = plan, form, memory, text
        self._tiles: dict[tuple[int, int, int], str] = {}

    def tile(self, number: int, start: int, width: int) -> str:
        """A name for some columns of such a state, as it enters a step."""
        key = (number, start, width)
        if key not in self._tiles:
            self._tiles[key] = name = f"whole{number}_{start}"
            place, moment = self._memory.of_carried(number), self._memory.entering(number, "first")
            self._text.before.append(f"{name} = {self._loaded(place, moment, 'row', start, width)}")
        return self._tiles[key]

    def tell(self, values: Mapping[fx.Node, Value]) -> None:
        for recipe in self.recipes.values():
            for node in recipe.told:
                line = self._memory.storing(self._place(node), "parity", "column", values[node].pieces[0])
                self._text.write(recipe.level - 1, line)

    def given(self, number: int, start: int, width: int, own: Mapping[fx.Node, Value]) -> dict[fx.Node, Value]:
        """For some columns, the values that the operators of a recipe begin with. `own`: those of one program."""
        recipe, text = self.recipes[number], self._text
        enters, _ = self._form.carried[number]
        found = {enters: Value([self.tile(number, start, width)], 0, True)}
        found |= {node: own[node] for node in recipe.narrow}
        for node in recipe.told:
            loaded = self._loaded(self._place(node), "parity", "row", start, width, ', cache_modifier=".cg"')
            found[node] = Value([text.load(recipe.level, "side", loaded)], recipe.level, True)
        for node in recipe.constants:
            name = text.new_name("constant")
            text.before.append(f"{name} = {self._loaded(self._memory.of_input(node), '', '', start, width)}")
            found[node] = Value([name], 0, True)
        return found

    def hand_on(self, number: int, start: int, width: int, made: Value) -> None:
        inside = f"in_rows & ({_columns(start, width)} < {self._text.units})"
        name = self.tile(number, start, width)
        self._text.last.append(f"{name} = tl.where({inside}, {made.pieces[0]}, 0.0)")

    @property
    def tiles(self) -> list[tuple[int, int, int]]:
        return list(self._tiles)

    def _place(self, node: fx.Node) -> Place:
        return self._memory.for_numbers(("everywhere", node), self._text.units)

    def _loaded(self, place: Place, moment: str, row: str, start: int, width: int, how: str = "") -> str:
        at = place.address(moment, row, _columns(start, width))
        mask = f"({_columns(start, width)} < {self._text.units})" + (" & in_rows" if row else "")
        return f"tl.load({at}, mask={mask}, other=0.0{how})"


def _columns(start: int, width: int) -> str:
    return f"{start} + tl.arange(0, {width})[None, :]"


def find_recipe(
    plan: Plan, form: Form, memory: Memory, values: Mapping[fx.Node, Value], number: int
) -> Recipe | None:
    """Of the state with this number. None: it is known as early as what it is made from, or made from too much."""
    enters, leaves = form.carried[number]
    columns = memory.columns(enters)
    if leaves is None or not values[leaves].is_wide or values[leaves].level == 0:
        return None
    recipe = Recipe(values[leaves].level, [], [], [], [])

    def has(node: fx.Node) -> bool:
        """Whether all programs know it, or can make it."""
        if node is enters or any(node in nodes for nodes in recipe[1:]):  # type: ignore[operator]
            return True
        if node not in values:
            return False
        if not values[node].is_wide:
            recipe.narrow.append(node)
        elif node in form.part.inputs and memory.is_constant(node):
            recipe.constants.append(node)
        elif values[node].level < recipe.level:
            recipe.told.append(node)
        elif is_normal(node) or node.target in SAME or expression(node.target, dict(node.kwargs)):
            inputs = operands(node)[0].all_input_nodes if is_normal(node) else node.all_input_nodes
            if not all([has(one) for one in inputs]):
                return False
            recipe.nodes.append(node)
        else:
            return False
        return True

    if not has(leaves) or len(recipe.told) > MOST_TOLD:
        return None
    wide = [enters, leaves, *recipe.told, *recipe.constants]
    is_alike = all((plan.dtype(node), memory.columns(node)) == (torch.float32, columns) for node in wide)
    return recipe if is_alike else None


def is_normal(node: fx.Node) -> bool:
    """What a layer norm makes of each value that it is given."""
    is_first = node.target is operator.getitem and operands(node)[1] == 0
    return is_first and operands(node)[0].target is aten.native_layer_norm.default
