"""Asking systems for their graphs, each in a worker of its own."""

import tempfile
from pathlib import Path

import msgspec

from rnnbench.domain.case import Method
from rnnbench.domain.profile import Retrace
from rnnbench.graph.model import Graph, Taken
from rnnbench.launch.events import Delivered, Hello
from rnnbench.launch.inputs import inputs_of
from rnnbench.launch.job import make_job
from rnnbench.launch.launcher import judge
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.launch.subject import Subject, find_subject
from rnnbench.launch.worker import Ending, run_worker
from rnnbench.plan import Plan
from rnnbench.profile.retrace import launch_retrace


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
        subject = find_subject(case, plan.workloads, plan.systems, ready.environments)
        taken = _take(subject, method)
        for graph in taken.graphs if not with_text else ():
            graph.text = ""
        if reshape and taken.graphs:
            taken.retrace = _retrace(subject, method)
        answers.append(taken)
        said = ", ".join(f"{graph.form} of {graph.nodes} nodes" for graph in taken.graphs) or taken.reason
        listener.note(f"{case.system} {case.workload} {case.phase}: {said} ({taken.seconds:.1f} s)")
    return answers


def _take(subject: Subject, method: Method) -> Taken:
    ending, content = ask(subject, method, "graph")
    outcome, reason = judge(subject.case, method.threads, ending)
    taken = Taken(case=subject.case, outcome=outcome, reason=reason, seconds=ending.seconds)
    taken.versions = next((event.versions for event in ending.events if isinstance(event, Hello)), {})
    if outcome == "ok" and content:
        taken.graphs = msgspec.json.decode(content, type=list[Graph])
    elif outcome == "ok":
        taken.reason = f"{subject.manifest.title}'s folder offers no graphs"
    return taken


def _retrace(subject: Subject, method: Method) -> Retrace:
    with tempfile.TemporaryDirectory(prefix="rnnbench-reshape-") as folder:
        found = launch_retrace(subject, method, Path(folder))
    if subject.workload.one_step:  # it has no length that could change
        found = msgspec.structs.replace(found, reshapes=tuple(one for one in found.reshapes if one.change == "batch"))
    return found


def ask(subject: Subject, method: Method, mode: str) -> tuple[Ending, bytes]:
    """How a worker ended, and the file it delivered."""
    with tempfile.TemporaryDirectory(prefix="rnnbench-graph-") as folder:
        inputs = inputs_of(subject.workload, method.seed, Path(folder), 1)
        job = make_job(mode, subject, method, str(inputs), arrays=folder)
        ending = run_worker(subject.environment, job, subject.manifest.variables, method.limit_seconds)
        delivered = [event.path for event in ending.events if isinstance(event, Delivered)]
        return ending, Path(delivered[0]).read_bytes() if delivered else b""
