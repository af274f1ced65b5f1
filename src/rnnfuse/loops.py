"""A loop over time, forwards or backwards: a compiled step, and the values that one step hands on to the next."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, fx

from .buffers import Buffers, Series
from .plan import Form


class Loop:
    """One run of a loop. Its values lie in `buffers`, which it makes room in."""

    def __init__(self, form: Form, buffers: Buffers, compile: bool, persistent: bool | None = False) -> None:
        """`persistent`: whether it may be one kernel that stays on the GPU; None: if that is faster."""
        self.form, self.buffers, self.compile, self.persistent = form, buffers, compile, persistent
        steps, late = buffers.steps, int(form.from_the_end)
        self.sums = {node: torch.zeros_like(buffers.new(node, 1)[0]) for node in form.added}
        #: What a kernel has added up over steps, of each block of sequences, and over how many steps.
        self.added_up: dict[fx.Node, Tensor] = {}
        self.steps_added_up = 0
        #: What a kernel multiplied before it started, over all steps, by the factors.
        self.multiplied: dict[object, Tensor] = {}
        #: How many loops run at once, each as a kernel on its part of the GPU.
        self.shared_by = 1
        #: Gradients that come from outside, for what enters at each step.
        self.given_in_addition: list[Tensor] = []
        self._moves: list[tuple[fx.Node | None, Series]] = []
        self._carried: list[Tensor] = []
        self._is_kept: list[bool] = []
        self.carries: set[fx.Node] = set()  # what is written straight into its place for the next step
        for number, (enters, leaves) in enumerate(form.carried):
            is_kept = form.keeps(number)
            # What only the next step needs has room for two steps, the one that is read and the one that is written.
            memory = buffers.new(enters, steps + 1 if is_kept else 2)
            self._carried.append(memory)
            self._is_kept.append(is_kept)
            buffers.series[enters] = Series(memory, late)
            if leaves is not None and leaves in form.part.outputs and leaves not in self.carries:
                self.carries.add(leaves)
                buffers.series[leaves] = Series(memory, 1 - late)
            else:
                self._moves.append((leaves, Series(memory, 1 - late)))
        within = form.part.within
        stored = form.stored
        for node in form.part.outputs:
            if node not in self.carries and node not in within:
                buffers.put(node, buffers.new(node, steps if node in stored else 1))
        for node, (output, _, dimension, start, length) in within.items():
            buffers.series[node] = buffers.series[output].narrowed(dimension, start or 0, length)

    def end(self) -> list[Tensor]:
        """What left the last step."""
        return self._at(0 if self.form.from_the_end else self.buffers.steps)

    def entering(self, start: int, stop: int) -> list[Tensor]:
        """What enters the first of these steps, in the order of the loop."""
        return self._at(stop if self.form.from_the_end else start)

    def carried_over(self, start: int, stop: int) -> list[Tensor]:
        """What entered and left these steps where that is kept, or else what left the last of them."""
        ends = self._at(start if self.form.from_the_end else stop)
        return [
            memory[start : stop + 1] if is_kept else end
            for memory, is_kept, end in zip(self._carried, self._is_kept, ends, strict=True)
        ]

    def left(self, number: int) -> Tensor:
        """What left each step: [steps, …], of a carried value that is kept."""
        first = int(not self.form.from_the_end)
        return self._carried[number][first : first + self.buffers.steps]

    def carried_memory(self, number: int) -> Tensor:
        """[steps + 1, …] where all steps are kept, or else [2, …]."""
        return self._carried[number]

    def _at(self, position: int) -> list[Tensor]:
        """What is carried, between the steps before and after this position."""
        return [memory[position % len(memory)] for memory in self._carried]

    def run(self, start: int, stop: int) -> None:
        """The steps from `start` to before `stop`; in the order of the loop."""
        part, buffers = self.form.part, self.buffers
        buffers.lay_out(part.inputs)
        used = [*part.inputs, *part.outputs]
        function = None
        for t in self._order(range(start, stop)):
            for (enters, _), more in zip(self.form.carried, self.given_in_addition, strict=False):
                buffers.at(enters, t).add_(more[t])
            if part:
                values = [buffers.at(node, t) for node in used]
                function = function or part.in_place(buffers.rows, values, self.compile)
                function(values)
            for leaves, after in self._moves:
                if leaves is None:
                    after.at(t).zero_()
                else:
                    after.at(t).copy_(buffers.at(leaves, t))
            for node, total in self.sums.items():
                total.add_(buffers.at(node, t))

    def _order(self, steps: range) -> Iterable[int]:
        return reversed(steps) if self.form.from_the_end else steps
