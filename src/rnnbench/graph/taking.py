"""A graph as the driver has it: nodes, edges, and the graphs inside nodes."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.profile import Change, Retrace
from rnnbench.domain.result import Outcome
from rnnbench.launch.events import Delivered, Hello
from rnnbench.launch.job import ResolvedCase, make_job, resolve_case, write_workload_inputs
from rnnbench.launch.launcher import outcome_of
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.launch.worker import WorkerResult, run_worker
from rnnbench.plan import Plan
from rnnbench.profile import launch_retrace


class Graph(msgspec.Struct, kw_only=True):
    """Nodes stand in an order in which they can be computed; edges go the way the numbers go."""

    form: str  # what the framework calls it; "none" where there is none
    built: str  # when the framework makes it
    operators: list[str]  # of every node
    names: list[str]  # of every node, or ""
    edges: list[tuple[int, int]]
    bodies: list["InnerGraph"] = []
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


class InnerGraph(msgspec.Struct, kw_only=True):
    """The graph inside a node: of a loop, a branch, a function called."""

    of: int
    role: str
    graph: Graph


class TakenGraphs(msgspec.Struct, kw_only=True):
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


def take_graphs(
    plan: Plan, method: Method, listener: Listener, *, reshape: bool = False, with_text: bool = True
) -> list[TakenGraphs]:
    """One answer for each system and environment: of its last phase, training where it has it.

    With `reshape` each is also run with another batch size and another length, in a second worker. The frameworks'
    own texts of many large graphs would fill the memory: whoever only counts leaves them out.
    """
    ready = prepare(plan, listener)
    chosen = {(case.system, case.environment): case for case in ready.cases}
    left_out = {(left.case.system, left.case.environment): left for left in ready.left_out}
    order = list(plan.systems)
    answers: list[TakenGraphs] = []
    for key in sorted({**left_out, **chosen}, key=lambda key: order.index(key[0])):
        if key not in chosen:
            answers.append(TakenGraphs(case=left_out[key].case, outcome="unsupported", reason=left_out[key].reason))
            continue
        case = chosen[key]
        resolved = resolve_case(case, plan.workloads, plan.systems, ready.environments)
        taken = _take(resolved, method)
        for graph in taken.graphs if not with_text else ():
            graph.text = ""
        if reshape and taken.graphs:
            taken.retrace = _retrace(resolved, method)
        answers.append(taken)
        said = ", ".join(f"{graph.form} of {graph.nodes} nodes" for graph in taken.graphs) or taken.reason
        listener.note(f"{case.system} {case.workload} {case.phase}: {said} ({taken.seconds:.1f} s)")
    return answers


def _take(resolved: ResolvedCase, method: Method) -> TakenGraphs:
    result, content = run_graph_worker(resolved, method, "graph")
    outcome, reason = outcome_of(resolved.case, method.threads, result)
    taken = TakenGraphs(case=resolved.case, outcome=outcome, reason=reason, seconds=result.seconds)
    taken.versions = next((event.versions for event in result.events if isinstance(event, Hello)), {})
    if outcome == "ok" and content:
        taken.graphs = msgspec.json.decode(content, type=list[Graph])
    elif outcome == "ok":
        taken.reason = f"{resolved.manifest.title}'s folder offers no graphs"
    return taken


def _retrace(resolved: ResolvedCase, method: Method) -> Retrace:
    with tempfile.TemporaryDirectory(prefix="rnnbench-reshape-") as folder:
        found = launch_retrace(resolved, method, Path(folder))
    if resolved.workload.one_step:  # it has no length that could change
        found = msgspec.structs.replace(found, reshapes=tuple(one for one in found.reshapes if one.change == "batch"))
    return found


def run_graph_worker(resolved: ResolvedCase, method: Method, mode: str) -> tuple[WorkerResult, bytes]:
    """How a worker ended, and the file it delivered."""
    with tempfile.TemporaryDirectory(prefix="rnnbench-graph-") as folder:
        inputs = write_workload_inputs(resolved.workload, method.seed, Path(folder), 1)
        job = make_job(mode, resolved, method, str(inputs), arrays=folder)
        result = run_worker(resolved.environment, job, resolved.manifest.variables, method.limit_seconds)
        delivered = [event.path for event in result.events if isinstance(event, Delivered)]
        return result, Path(delivered[0]).read_bytes() if delivered else b""
