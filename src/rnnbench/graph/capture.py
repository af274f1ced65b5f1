"""Graphs as the driver has them (nodes, edges, and graphs inside nodes), and how they are captured in workers."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.profile import Change, Retrace
from rnnbench.domain.result import Outcome
from rnnbench.environments.holding import held
from rnnbench.files import DAMAGED_JSON, read_regular
from rnnbench.launch.events import Delivered, Hello
from rnnbench.launch.job import ResolvedCase, make_job, resolve_case, write_workload_inputs
from rnnbench.launch.launcher import outcome_of
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.launch.worker import WorkerResult, run_worker
from rnnbench.plan import Plan
from rnnbench.profile import launch_retrace
from rnnbench.scratch import scratch_folder


class Graph(msgspec.Struct, kw_only=True):
    """Nodes are in an order in which they can be computed; edges point in the direction of the data."""

    form: str  # what the framework calls it; "none" if there is none
    built: str  # when the framework builds it
    operators: list[str]  # one for every node
    names: list[str]  # one for every node; "" if it has none
    edges: list[tuple[int, int]]
    bodies: list["InnerGraph"] = []
    text: str = ""  # as the framework prints it
    note: str = ""

    def parts(self, title: str = "") -> Iterator[tuple[str, "Graph"]]:
        """This graph and all graphs inside it, each with a title that names its owner."""
        yield title or self.form, self
        for body in self.bodies:
            owner = self.names[body.of] or self.operators[body.of]
            yield from body.graph.parts(f"{body.role} of {self.operators[body.of]} {owner}".strip())

    @property
    def nodes(self) -> int:
        """The number of nodes in it and in all graphs inside it."""
        return sum(len(part.operators) for _, part in self.parts())

    @property
    def links(self) -> int:
        return sum(len(part.edges) for _, part in self.parts())

    def kinds(self) -> Counter[str]:
        """How many nodes there are of each operator, the most frequent first."""
        return Counter(operator for _, part in self.parts() for operator in part.operators)


class InnerGraph(msgspec.Struct, kw_only=True):
    """The graph inside a node: of a loop, a branch or a called function."""

    of: int
    role: str
    graph: Graph


class CapturedGraphs(msgspec.Struct, kw_only=True):
    """The graphs of one system, or why there are none."""

    case: Case
    outcome: Outcome | Literal["unsupported"] = "ok"
    reason: str = ""
    graphs: list[Graph] = []
    versions: dict[str, str] = {}
    seconds: float = 0.0
    retrace: Retrace | None = None  # only with `reshape`

    def effect_of(self, change: Change) -> str:
        """What a new batch size or a new length does to the graph, in words; empty if that was not tried."""
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


def capture_graphs(
    plan: Plan, method: Method, listener: Listener, *, reshape: bool = False, with_text: bool = True
) -> list[CapturedGraphs]:
    """Capture the graphs of each system and environment, in the training phase if the system has it.

    With `reshape` each is also run with a new batch size and a new length, in a second worker. Without `with_text` the
    frameworks' own texts are dropped: those of many large graphs would fill the memory.
    """
    prepared = prepare(plan, listener)
    chosen = {(case.system, case.environment): case for case in prepared.cases}
    left_out = {(left.case.system, left.case.environment): left for left in prepared.left_out}
    order = list(plan.systems)
    answers: list[CapturedGraphs] = []
    for key in sorted({**left_out, **chosen}, key=lambda key: order.index(key[0])):
        if key not in chosen:
            answers.append(CapturedGraphs(case=left_out[key].case, outcome="unsupported", reason=left_out[key].reason))
            continue
        case = chosen[key]
        resolved = resolve_case(case, plan.workloads, plan.systems, prepared.environments)
        captured = _capture_one(resolved, method)
        for graph in captured.graphs if not with_text else ():
            graph.text = ""
        if reshape and captured.graphs:
            captured.retrace = _try_new_shapes(resolved, method)
        answers.append(captured)
        found = ", ".join(f"{graph.form} of {graph.nodes} nodes" for graph in captured.graphs) or captured.reason
        listener.note(f"{case.system} {case.workload} {case.phase}: {found} ({captured.seconds:.1f} s)")
    return answers


def _capture_one(resolved: ResolvedCase, method: Method) -> CapturedGraphs:
    result, content = run_graph_worker(resolved, method, "graph")
    outcome, reason = outcome_of(resolved.case, method.threads, result)
    captured = CapturedGraphs(case=resolved.case, outcome=outcome, reason=reason, seconds=result.seconds)
    captured.versions = next((event.versions for event in result.events if isinstance(event, Hello)), {})
    if outcome == "ok" and content:
        try:
            captured.graphs = msgspec.json.decode(content, type=list[Graph])
        except DAMAGED_JSON as error:
            captured.outcome, captured.reason = "failed", f"its graphs cannot be read: {error}"
    elif outcome == "ok":
        captured.reason = f"{resolved.manifest.title} has no code that captures graphs"
    return captured


def _try_new_shapes(resolved: ResolvedCase, method: Method) -> Retrace:
    with scratch_folder("reshape") as folder:
        retrace = launch_retrace(resolved, method, Path(folder))
    if resolved.workload.one_step:  # its length is fixed
        by_batch = tuple(one for one in retrace.reshapes if one.change == "batch")
        retrace = msgspec.structs.replace(retrace, reshapes=by_batch)
    return retrace


def run_graph_worker(resolved: ResolvedCase, method: Method, mode: str) -> tuple[WorkerResult, bytes]:
    """Run a worker in one of the modes that deliver a file. Returns how it ended, and the file's content."""
    with held([resolved.environment]), scratch_folder("graph") as folder:
        inputs = write_workload_inputs(resolved.workload, method.seed, Path(folder), 1)
        job = make_job(mode, resolved, method, str(inputs), arrays=folder)
        result = run_worker(resolved.environment, job, resolved.manifest.variables, method.limit_seconds)
        delivered = [event.path for event in result.events if isinstance(event, Delivered)]
        return result, _read_delivered(delivered[0], Path(folder)) if delivered else b""


def _read_delivered(path: str, folder: Path) -> bytes:
    """The file, if it is one and lies in the worker's folder; otherwise nothing, as if it had not been delivered."""
    if Path(path).parent.resolve() != folder.resolve():
        return b""
    try:
        return read_regular(Path(path))
    except (OSError, ValueError):
        return b""
