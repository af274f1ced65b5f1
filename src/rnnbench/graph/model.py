"""A graph as the driver has it: nodes, edges, and the graphs inside nodes."""

from collections import Counter
from collections.abc import Iterator
from typing import Literal

import msgspec

from rnnbench.domain.case import Case
from rnnbench.domain.profile import Change, Retrace
from rnnbench.domain.result import Outcome


class Graph(msgspec.Struct, kw_only=True):
    """Nodes stand in an order in which they can be computed; edges go the way the numbers go."""

    form: str  # what the framework calls it; "none" where there is none
    built: str  # when the framework makes it
    operators: list[str]  # of every node
    names: list[str]  # of every node, or ""
    edges: list[tuple[int, int]]
    bodies: list["Body"] = []
    text: str = ""  # as the framework prints it
    note: str = ""

    def parts(self, title: str = "") -> Iterator[tuple[str, "Graph"]]:
        """This graph and all graphs inside it, each with a title that says where it belongs."""
        yield title or self.form, self
        for body in self.bodies:
            owner = self.names[body.of] or self.operators[body.of]
            yield from body.graph.parts(f"{body.role} of {self.operators[body.of]} {owner}".strip())

    @property
    def nodes(self) -> int:
        """In it and in all graphs inside it."""
        return sum(len(part.operators) for _, part in self.parts())

    @property
    def links(self) -> int:
        return sum(len(part.edges) for _, part in self.parts())

    def kinds(self) -> Counter[str]:
        """How many nodes there are of each operator, the most frequent first."""
        return Counter(operator for _, part in self.parts() for operator in part.operators)


class Body(msgspec.Struct, kw_only=True):
    """The graph inside a node: of a loop, a branch, a function called."""

    of: int
    role: str
    graph: Graph


class Taken(msgspec.Struct, kw_only=True):
    """What came of asking one system for its graphs."""

    case: Case
    outcome: Outcome | Literal["unsupported"] = "ok"
    reason: str = ""
    graphs: list[Graph] = []
    versions: dict[str, str] = {}
    seconds: float = 0.0
    retrace: Retrace | None = None  # what came of new shapes, where that was asked

    def again(self, change: Change) -> str:
        """What a new batch size or a new length does to the graph, in words; empty where nobody asked."""
        if self.retrace is None:
            return ""
        found = self.retrace.of(change)
        if found is None:
            return self.retrace.reason or "not tried"
        return {
            "kept": "nothing built",
            "rebuilt": f"built again ({found.builds})",
            "uncounted": "runs as it is",
            "anew": "another program needed",
        }[found.outcome]
