"""Asking systems for their graphs, each in a worker of its own."""

import tempfile
from pathlib import Path

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.profile import Retrace
from rnnbench.graph.model import Graph, Taken
from rnnbench.launch.events import Delivered, Hello
from rnnbench.launch.job import make_job
from rnnbench.launch.launcher import judge
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import Ready, prepare
from rnnbench.launch.worker import Ending, run_worker
from rnnbench.manifests import manifests
from rnnbench.plan import Plan
from rnnbench.profile.retrace import launch_retrace
from rnnbench.reference.inputs import make_batches, make_parameters, write_inputs


def take_graphs(
    plan: Plan, method: Method, listener: Listener, *, reshape: bool = False, with_text: bool = True
) -> list[Taken]:
    """One answer for each system and environment: of its last phase, training where it has it.

    With `reshape` each is also run with another batch size and another length, in a second worker. The frameworks'
    own texts of many large graphs would fill the memory: whoever only counts leaves them out.
    """
    ready = prepare(plan, listener)
    chosen = {(case.system, case.environment): case for case in ready.cases}
    left_out = {(left.case.system, left.case.environment): left for left in ready.left_out}
    order = list(plan.systems)
    answers: list[Taken] = []
    for key in sorted({**left_out, **chosen}, key=lambda key: order.index(key[0])):
        if key not in chosen:
            answers.append(Taken(case=left_out[key].case, outcome="unsupported", reason=left_out[key].reason))
            continue
        case = chosen[key]
        taken = _take(plan, ready, case, method)
        for graph in taken.graphs if not with_text else ():
            graph.text = ""
        if reshape and taken.graphs:
            taken.retrace = _retrace(plan, ready, case, method)
        answers.append(taken)
        said = ", ".join(f"{graph.form} of {graph.nodes} nodes" for graph in taken.graphs) or taken.reason
        listener.note(f"{case.system} {case.workload} {case.phase}: {said} ({taken.seconds:.1f} s)")
    return answers


def _take(plan: Plan, ready: Ready, case: Case, method: Method) -> Taken:
    ending, content = ask(plan, ready, case, method, "graph")
    outcome, reason = judge(case, method.threads, ending)
    taken = Taken(case=case, outcome=outcome, reason=reason, seconds=ending.seconds)
    taken.versions = next((event.versions for event in ending.events if isinstance(event, Hello)), {})
    if outcome == "ok" and content:
        taken.graphs = msgspec.json.decode(content, type=list[Graph])
    elif outcome == "ok":
        taken.reason = f"{manifests()[case.framework].title}'s folder offers no graphs"
    return taken


def _retrace(plan: Plan, ready: Ready, case: Case, method: Method) -> Retrace:
    environment, system = ready.environments[case.environment], plan.systems[case.system]
    manifest, workload = manifests()[case.framework], plan.workloads[case.workload]
    with tempfile.TemporaryDirectory(prefix="rnnbench-reshape-") as folder:
        found = launch_retrace(case, workload, system, manifest, environment, method, Path(folder))
    if workload.one_step:  # it has no length that could change
        found = msgspec.structs.replace(found, reshapes=tuple(one for one in found.reshapes if one.change == "batch"))
    return found


def ask(plan: Plan, ready: Ready, case: Case, method: Method, mode: str) -> tuple[Ending, bytes]:
    """How a worker ended, and the file it delivered."""
    workload, manifest = plan.workloads[case.workload], manifests()[case.framework]
    with tempfile.TemporaryDirectory(prefix="rnnbench-graph-") as folder:
        inputs = Path(folder) / "inputs.npz"
        write_inputs(inputs, make_parameters(workload, method.seed), make_batches(workload, 1, method.seed))
        system = plan.systems[case.system]
        job = make_job(mode, case, workload, system, manifest, method, str(inputs), arrays=folder)
        ending = run_worker(ready.environments[case.environment], job, manifest.variables, method.limit_seconds)
        delivered = [event.path for event in ending.events if isinstance(event, Delivered)]
        return ending, Path(delivered[0]).read_bytes() if delivered else b""
