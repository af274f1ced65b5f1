"""What a loop over time does, whatever the call."""

from __future__ import annotations

from dataclasses import dataclass

from torch import fx

from .parts import Part


@dataclass(frozen=True, eq=False)
class Form:
    part: Part
    carried: list[tuple[fx.Node, fx.Node | None]]  # what enters a step, and what leaves it for the next; None: zero
    added: list[fx.Node]  # of which only the sum over all steps is wanted
    kept: frozenset[fx.Node]  # which must be known for every step afterwards
    from_the_end: bool

    @property
    def stored(self) -> set[fx.Node]:
        """The outputs that need memory for every step: what is kept, and what something that is kept lies within."""
        return {*self.kept, *(one.output for node, one in self.part.within.items() if node in self.kept)}
