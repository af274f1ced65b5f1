"""The values of a plan in one call: what stays the same, and what differs from step to step.

Whatever a loop makes is written in place, into its step's part of an array of all steps. So nothing is copied together
when all steps are needed at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import prod

import torch
from torch import Tensor, fx

from .parts import Part
from .plan import Plan

FEW = 8  # views that are made one by one
ALIGNMENT = 64  # bytes: what is compiled expects each step's part to begin at a multiple of 16 at least


_numbers = count()


class Series:
    """A value at each step, the one of step t at place (t + first) % length of its memory."""

    def __init__(self, memory: Tensor, first: int = 0) -> None:
        self.memory, self.first = memory, first
        self._views: Sequence[Tensor] = ()
        self._asked = 0

    def at(self, t: int) -> Tensor:
        # A thousand views take a millisecond: only where many steps are run one by one.
        if not self._views:
            self._asked += 1
            if self._asked <= FEW:
                return self.memory[(t + self.first) % len(self.memory)]
            self._views = self.memory.unbind(0)
        return self._views[(t + self.first) % len(self._views)]

    def between(self, start: int, stop: int) -> Tensor:
        """[steps, …], where there is memory for all steps."""
        first, last = self.first + start, self.first + stop
        return self.memory if first == 0 and last == len(self.memory) else self.memory[first:last]

    def narrowed(self, dimension: int, start: int, length: int) -> Series:
        return Series(self.memory.narrow(dimension + 1, start, length), self.first)


class Buffers:
    def __init__(self, plan: Plan, steps: int, rows: int, device: torch.device) -> None:
        self.plan, self.steps, self.rows, self.device = plan, steps, rows, device
        self.number = next(_numbers)  # of the call
        self.constant: dict[fx.Node, Tensor] = {}
        self.series: dict[fx.Node, Series] = {}

    def put(self, node: fx.Node, whole: Tensor) -> None:
        self.series[node] = Series(whole)

    def at(self, node: fx.Node, t: int) -> Tensor:
        return self.constant[node] if node in self.constant else self.series[node].at(t)

    def whole(self, node: fx.Node) -> Tensor:
        """The values of all steps, of a node that has memory for them."""
        return self.series[node].between(0, self.steps)

    def new(self, node: fx.Node, length: int) -> Tensor:
        """Memory for `length` values of a node."""
        shape, dtype = self.plan.shape(node, self.rows), self.plan.dtype(node)
        size, unit = prod(shape), ALIGNMENT // dtype.itemsize
        if size % unit == 0:
            return torch.empty(length, *shape, dtype=dtype, device=self.device)
        flat = torch.empty(length, -(-size // unit) * unit, dtype=dtype, device=self.device)
        return flat[:, :size].view(length, *shape)

    # --- parts that run outside of the loops ---

    def run_once(self, part: Part) -> None:
        if part:
            found = part(self.rows, [self.constant[one] for one in part.inputs])
            self.constant.update(zip(part.outputs, found, strict=True))

    def lay_out(self, nodes: Sequence[fx.Node]) -> None:
        """What is the same at every step and read by each: products with transposed weights are slower."""
        for node in nodes:
            if node in self.constant and node in self.plan.once.outputs:
                self.constant[node] = self.constant[node].contiguous()

    def run_over_steps(self, part: Part, start: int, stop: int) -> list[Tensor]:
        """A part whose operators treat all rows alike, over those of several steps at once."""
        if not part:
            return []
        return list(part((stop - start) * self.rows, [self.merged(one, start, stop) for one in part.inputs]))

    def merged(self, node: fx.Node, start: int, stop: int) -> Tensor:
        """The rows of several steps in one dimension."""
        if node in self.constant:
            return self.constant[node]
        dimension, values = self.plan.row_dimension(node), self.series[node].between(start, stop)
        return (values.movedim(0, dimension) if dimension else values).flatten(dimension, dimension + 1)

    def separated(self, node: fx.Node, value: Tensor, steps: int) -> Tensor:
        """The inverse of merging: [steps, …]."""
        dimension = self.plan.row_dimension(node)
        sizes = [*value.shape[:dimension], steps, self.rows, *value.shape[dimension + 1 :]]
        return value.reshape(sizes).movedim(dimension, 0)

    def run_and_store(self, part: Part, start: int, stop: int) -> None:
        """The same, into memory for the values of all steps: products are written there, others are copied."""
        if not part:
            return
        is_all = stop - start == self.steps
        targets = {}
        for node in part.outputs:
            if node not in self.series and not is_all:
                self.reserve(node)
            if node in self.series and part.can_write(node) and self.series[node].between(start, stop).is_contiguous():
                targets[node] = self.merged(node, start, stop)  # a view then, since its rows come first
        inputs = [self.merged(one, start, stop) for one in part.inputs]
        for node, value in part.run_into((stop - start) * self.rows, inputs, targets).items():
            found = self.separated(node, value, stop - start)
            if node in self.series:
                self.series[node].between(start, stop).copy_(found)
            else:
                self.put(node, found.contiguous())

    def reserve(self, node: fx.Node) -> Tensor:
        """Memory for the values of all steps, before they are known."""
        self.put(node, self.new(node, self.steps))
        return self.whole(node)
