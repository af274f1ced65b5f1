"""Where the values of a kernel lie: what it is given, what it stores, and what its programs tell each other."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from ..loops import Loop
from ..plan import Form, Plan
from .text import Inexpressible, Text, Value

TYPES = {torch.float32: "tl.float32", torch.bfloat16: "tl.bfloat16", torch.float16: "tl.float16"}


class Factors(NamedTuple):
    """What is multiplied before a kernel starts, over all its steps, with weights without the mean of each column."""

    left: fx.Node | None  # None: such weights alone
    weights: fx.Node
    is_after_turned: bool = False  # whether the left side is multiplied with the same weights turned, before


class Role(Enum):
    CONSTANT = "the same at every step"
    SERIES = "at every step"
    CARRIED = "handed on from step to step"
    SCRATCH = "for a step and the next"
    SUM = "added up over all steps"
    AHEAD = "multiplied before the kernel starts, over all its steps"


class Place(NamedTuple):
    """A tensor that a kernel is given, under a name of its own."""

    name: str
    role: Role
    node: fx.Node | None
    columns: int  # 0: one value for each row, or one alone
    number: int = 0  # of what is carried
    dtype: torch.dtype = torch.float32  # of scratch memory
    factors: Factors | None = None  # of what is multiplied ahead

    @property
    def parameters(self) -> list[str]:
        return [self.name, f"{self.name}_step", f"{self.name}_row", f"{self.name}_column"]

    def address(self, moment: str, row: str, column: str) -> str:
        """Of one or more values. `moment`: which of the tensors for the steps, as an expression."""
        is_one = self.role in (Role.CONSTANT, Role.SUM)
        base = self.name if is_one else f"{self.name} + ({moment}).to(tl.int64) * {self.name}_step"
        rows = f" + ({row}) * {self.name}_row" if row else ""
        columns = f" + ({column}) * {self.name}_column" if column else ""
        return f"{base}{rows}{columns}"


class Memory:
    def __init__(self, plan: Plan, form: Form, text: Text) -> None:
        self._plan, self._form, self._text = plan, form, text
        self._places: dict[tuple[Any, ...], Place] = {}
        self._stored: set[fx.Node] = set()
        late = int(form.from_the_end)
        self._enters, self._leaves = f"+ {late}", f"+ {1 - late}"

    @property
    def places(self) -> list[Place]:
        return list(self._places.values())

    def columns(self, node: fx.Node) -> int:
        """0: one value for each row, or one alone."""
        shape, rows = self._plan.step.shapes[node], self._plan.step.row_dimensions[node]
        if rows not in ((), (0,)) or len(shape) > 2:
            raise Inexpressible("a value has more than rows and columns")
        columns = shape[1:] if rows else shape[-1:]
        return int(columns[-1]) if columns else 0

    def is_constant(self, node: fx.Node) -> bool:
        return not self._plan.changes(node)

    # --- places ---

    def of_input(self, node: fx.Node) -> Place:
        return self._place(("input", node), Role.CONSTANT if self.is_constant(node) else Role.SERIES, node)

    def of_carried(self, number: int) -> Place:
        return self._place(("carried", number), Role.CARRIED, self._form.carried[number][0], number)

    def entering(self, number: int, moment: str = "t") -> str:
        """When something carried is read. There is room for all steps, or for two: then only the last digit counts."""
        return f"({moment} {self._enters}) & digits{number}"

    def leaving(self, number: int) -> str:
        return f"(t {self._leaves}) & digits{number}"

    def of_result(self, node: fx.Node) -> tuple[Place, str]:
        """Where a value that the kernel makes is stored, and for which moment."""
        for number, (_, leaves) in enumerate(self._form.carried):
            if leaves is node and node in self._form.part.outputs:
                return self.of_carried(number), self.leaving(number)
        if node in self._form.stored and node not in self._form.part.within:
            return self._place(("series", node), Role.SERIES, node), "t"
        place = self._place(("scratch", node), Role.SCRATCH, node, dtype=self._plan.dtype(node))
        return place, "parity"

    def of_sum(self, node: fx.Node) -> Place:
        """Of each block of sequences, over all steps."""
        return self._place(("sum", node), Role.SUM, node)

    def for_numbers(self, key: object, count: int) -> Place:
        """Memory for so many numbers for each row."""
        place = Place(f"memory{len(self._places)}", Role.SCRATCH, None, count)
        return self._places.setdefault(("numbers", key), place)

    def ahead(self, factors: Factors, columns: int) -> Place:
        place = Place(f"memory{len(self._places)}", Role.AHEAD, None, columns, factors=factors)
        return self._places.setdefault(("ahead", factors), place)

    def without_means(self, weights: fx.Node) -> Place:
        name, factors = f"memory{len(self._places)}", Factors(None, weights)
        place = Place(name, Role.CONSTANT, weights, self.columns(weights), factors=factors)
        return self._places.setdefault(("ahead", factors), place)

    def _place(
        self, key: tuple[Any, ...], role: Role, node: fx.Node, number: int = 0, dtype: torch.dtype = torch.float32
    ) -> Place:
        place = Place(f"memory{len(self._places)}", role, node, self.columns(node), number, dtype)
        return self._places.setdefault(key, place)

    # --- reading and writing ---

    def given(self, node: fx.Node) -> Value:
        """An input, loaded before the loop if it never changes."""
        place, columns, units = self.of_input(node), self.columns(node), self._text.units
        is_wide = columns > 1
        if is_wide and columns % units:
            raise Inexpressible("a tensor's width is no multiple of the units'")
        row = "row" if self._plan.step.row_dimensions[node] else ""
        mask = {("row", True): "here", ("row", False): "in_rows", ("", True): "in_units"}.get((row, is_wide), "")
        names = []
        for piece in range(columns // units if is_wide else 1):
            column = f"{piece * units} + column" if is_wide else ""
            if place.role is Role.CONSTANT:
                names.append(f"given{len(self._text.before)}")
                self._text.before.append(f"{names[-1]} = {self.loaded(place, 't', row, column, mask)}")
            else:
                names.append(self._text.given(partial(self.loaded, place, row=row, column=column, mask=mask)))
        return Value(names, 0, is_wide)

    def loaded(self, place: Place, moment: str, row: str, column: str, mask: str) -> str:
        masked = f", mask={mask}, other=0.0" if mask else ""
        loaded = f"tl.load({place.address(moment, row, column)}{masked})"
        is_truth = place.node is not None and self._plan.dtype(place.node) is torch.bool
        return f"({loaded} != 0)" if is_truth else f"{loaded}.to(tl.float32)"

    def is_stored(self, node: fx.Node | None) -> bool:
        return node in self._stored

    def store(self, node: fx.Node, value: Value, is_told: bool) -> None:
        """Where it belongs, at the level where it is made, once. `is_told`: other programs of this kernel read it."""
        if node in self._stored:
            return
        self._stored.add(node)
        place, moment = self.of_result(node)
        self.write(place, moment, value, self._text.write if is_told else self._text.keep)

    def write(self, place: Place, moment: str, value: Value, write: Callable[[int, str], None]) -> None:
        for piece, name in enumerate(value.pieces):
            column = f"{piece * self._text.units} + column" if value.is_wide else ""
            if not value.is_wide and place.columns > 1:
                raise Inexpressible("a value has fewer columns than its place")
            write(value.level, self.storing(place, moment, column, name))

    def storing(self, place: Place, moment: str, column: str, name: str) -> str:
        at = place.address(moment, "row", column)
        if not column:  # the same for all programs that share sequences: one of them stores it
            return storing_narrow(place, at, name, "in_rows_of_one")
        return f"tl.store({at}, {_spread(place, name)}, mask=here)"

    def rounded(self, name: str, dtype: torch.dtype) -> str:
        """Kept in float32, with the precision of its type."""
        if dtype in (torch.bfloat16, torch.float16):
            return f"({name}).to({TYPES[dtype]}).to(tl.float32)"
        if dtype is torch.float32:
            return f"({name}) * 1.0"
        if dtype is torch.bool:
            return f"(({name}) != 0)"
        raise Inexpressible(f"it has values of type {dtype}")


def storing_narrow(place: Place, at: str, name: str, mask: str) -> str:
    """One number for each row, written as if it were as wide as the units, of which only the first is stored.

    For Triton it is then like all other values: a tensor of one column would be moved to other threads first, and all
    threads of a program wait for each other twice.
    """
    address = f"tl.max_contiguous({at} + own_column, (1, BLOCK_UNITS))"
    return f"tl.store({address}, {_spread(place, name)}, mask={mask} & (own_column == 0))"


def _spread(place: Place, name: str) -> str:
    whole = f"tl.zeros((BLOCK_ROWS, BLOCK_UNITS), tl.float32) + {name}" if _is_number(name) else name
    return f"tl.broadcast_to({whole}, (BLOCK_ROWS, BLOCK_UNITS)).to({place.name}.dtype.element_ty)"


def _is_number(text: str) -> bool:
    return text[0].isdigit() or text.startswith(("-", "float("))


def arguments(place: Place, loop: Loop, scratch: dict[str, Tensor]) -> list[Any]:
    """The tensor of a call that belongs to a place, and its strides, in the order of `parameters`."""
    if place.role is Role.CONSTANT:
        assert place.node is not None
        tensor = loop.multiplied[place.factors] if place.factors else loop.buffers.constant[place.node]
        return [tensor, 0, *_of_row_and_column(tensor.stride(), place)]
    if place.role is Role.SUM:
        assert place.node is not None
        total = loop.added_up[place.node]
        return [total, 0, *total.stride()]
    if place.role is Role.AHEAD:
        assert place.factors is not None
        memory = loop.multiplied[place.factors]
    elif place.role is Role.CARRIED:
        memory = loop.carried_memory(place.number)
    elif place.role is Role.SCRATCH:
        memory = scratch[place.name]
    else:
        assert place.node is not None
        series = loop.buffers.series[place.node]
        memory = series.memory[series.first :]
    return [memory, memory.stride(0), *_of_row_and_column(memory.stride()[1:], place)]


def _of_row_and_column(strides: tuple[int, ...], place: Place) -> tuple[int, int]:
    """Vectors have no rows, and values with one number for each row have no columns."""
    if len(strides) == 2:
        return strides[0], strides[1]
    if len(strides) == 1:
        return (strides[0], 0) if place.columns == 0 else (0, strides[0])
    return 0, 0


def make_scratch(places: list[Place], rows: int, device: torch.device) -> dict[str, Tensor]:
    """Memory for two steps of each value that programs tell each other and nobody else needs."""
    return {
        place.name: torch.empty(2, rows, place.columns, dtype=place.dtype, device=device)
        for place in places
        if place.role is Role.SCRATCH
    }
