"""A loop over time, forwards or backwards: a compiled step, and the values that one step hands on to the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, fx

from .buffers import Buffers, Series
from .forms import Form


class Loop:
    """One run of a loop. Its values lie in `buffers`, which it makes room in."""

    def __init__(self, form: Form, buffers: Buffers, compile: bool) -> None:
        self.form, self.buffers, self.compile = form, buffers, compile
        steps, late = buffers.steps, int(form.from_the_end)
        self.sums = {node: torch.zeros_like(buffers.new(node, 1)[0]) for node in form.added}
        #: Gradients that come from outside, for what enters at each step.
        self.given_in_addition: list[Tensor] = []
        self._moves: list[tuple[fx.Node | None, Series]] = []
        self._carried: list[Tensor] = []
        self._is_kept: list[bool] = []
        self.carries: set[fx.Node] = set()  # what is written straight into its place for the next step
        for enters, leaves in form.carried:
            is_kept = enters in form.kept or leaves in form.kept
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

    def begin(self, values: Sequence[Tensor]) -> None:
        """What enters the first step."""
        for whole, value in zip(self._carried, values, strict=True):
            whole[self._place(self.buffers.steps if self.form.from_the_end else 0, whole)].copy_(value)

    def end(self) -> list[Tensor]:
        """What left the last step."""
        place = 0 if self.form.from_the_end else self.buffers.steps
        return [whole[self._place(place, whole)] for whole in self._carried]

    def entering(self, start: int, stop: int) -> list[Tensor]:
        """What enters the first of these steps, in the order of the loop."""
        position = stop if self.form.from_the_end else start
        return [whole[self._place(position, whole)] for whole in self._carried]

    def carried_over(self, start: int, stop: int) -> list[Tensor]:
        """What entered and left these steps where that is kept, or else what left the last of them."""
        position = start if self.form.from_the_end else stop
        return [
            whole[start : stop + 1] if is_kept else whole[self._place(position, whole)]
            for whole, is_kept in zip(self._carried, self._is_kept, strict=True)
        ]

    def left(self, number: int) -> Tensor:
        """What left each step: [steps, …], of a carried value that is kept."""
        first = int(not self.form.from_the_end)
        return self._carried[number][first : first + self.buffers.steps]

    def _place(self, position: int, whole: Tensor) -> int:
        return position % len(whole)

    def run(self, start: int, stop: int) -> None:
        """The steps from `start` to before `stop`; in the order of the loop."""
        part, buffers = self.form.part, self.buffers
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
