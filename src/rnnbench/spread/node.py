"""What a job does on its node: part 0 plans, makes the environments and verifies; another part times its group.

Timing is a local run of one group, in a folder of this node: `session.resume` knows nothing of clusters.
"""

import os
from pathlib import Path

import msgspec

from rnnbench.domain.bounds import require_name
from rnnbench.domain.result import Verification
from rnnbench.domain.run import Environment, Run
from rnnbench.domain.system import Device
from rnnbench.environments.cache import interpreter_exists
from rnnbench.environments.registry import resolve
from rnnbench.environments.spec import parse_spec
from rnnbench.errors import UserError
from rnnbench.files import remove_folder
from rnnbench.launch.listener import Listener
from rnnbench.launch.probe import on_quiet_processors
from rnnbench.machine import describe_machine
from rnnbench.method import make_method, pick_threads
from rnnbench.plan import make_plan
from rnnbench.resuming import require_same_programs
from rnnbench.session import begin_run, resume, verify_run
from rnnbench.spread.folder import (
    PLAN,
    Group,
    Spread,
    cases_of,
    complete,
    complete_on,
    groups_of,
    read_spread,
    visit_folder,
)
from rnnbench.store import RUN_FILE, Contents, append, create_folder, read_folder


def work_on_part(folder: Path, part: int, listener: Listener) -> None:
    """Do all of a part's work that this node has not done yet, then say that it is complete."""
    spread, node = read_spread(folder), this_node()
    if part not in spread.parts:
        raise UserError(f"there is no part {part}", f"this run has the parts 0 to {spread.groups}")
    if earlier := complete_on(folder, part):  # another node was thought lost, but has gone on
        listener.note(f"part {part} is complete already, on {earlier}")
        return
    visit = visit_folder(folder, part, node)
    if not (visit / RUN_FILE).exists():
        remove_folder(visit)  # an earlier job was killed while it made the folder
    if part == PLAN:
        _plan(spread, visit, listener)
    else:
        _time(folder, part, visit, spread, listener)
    if not complete(folder, part, node):
        listener.note(f"part {part} was complete before, on {complete_on(folder, part)}: this visit is only kept")


def this_node() -> str:
    node = os.environ.get("SLURMD_NODENAME", "")
    try:
        require_name(node, "a node")
    except ValueError as error:
        raise UserError(f"this is not a job of Slurm: {error}", "`rnnbench run … --on slurm` submits jobs") from error
    return node


def _plan(spread: Spread, visit: Path, listener: Listener) -> None:
    request = spread.request
    if not (visit / RUN_FILE).exists():
        plan = make_plan(request.selection)
        method = make_method(**request.method)
        begin_run(plan, method, visit, listener, command=request.command, data=request.data, profile=request.profile)
    verify_run(visit, listener, retry_failed=spread.resuming.retry_failed)


def _time(folder: Path, part: int, visit: Path, spread: Spread, listener: Listener) -> None:
    planned_on = complete_on(folder, PLAN)
    if planned_on is None:
        raise UserError("this run has no plan yet", f"resume it: rnnbench run --resume {folder}")
    plan = read_folder(visit_folder(folder, PLAN, planned_on))
    groups = groups_of(plan.run)
    if part > len(groups):
        listener.note("nothing to do: fewer groups than were asked for have a case that can be run")
        return
    if not (visit / RUN_FILE).exists():
        _begin_part(plan, groups[part - 1], visit, listener)
    again = spread.resuming
    resume(
        visit,
        listener,
        retry_failed=again.retry_failed,
        limit_seconds=again.limit_seconds,
        ahead=again.ahead,
        repeats=again.repeats,
        trust=True,  # part 0 found the interpreters
    )


def _begin_part(plan: Contents, group: Group, visit: Path, listener: Listener) -> None:
    """The plan's run reduced to one group, on this machine, with the verdicts of part 0."""
    require_same_programs(plan.run)
    run = part_of(plan.run, group, listener)
    create_folder(visit, run)
    small = {msgspec.structs.replace(case, workload=run.proved_on[case.workload]) for case in run.cases}
    for record in plan.records:
        if isinstance(record, Verification) and record.case in small:
            append(visit, record)


def part_of(run: Run, group: Group, listener: Listener) -> Run:
    cases = cases_of(run, group)
    workload, _, device, _ = group
    names = dict.fromkeys(case.environment for case in cases)
    # As many threads as in all parts, on the processors of this node.
    pinned = msgspec.structs.replace(run.method, cpus=pick_threads(run.method.threads)[1], quiet_cpus=0)
    return msgspec.structs.replace(
        run,
        machine=describe_machine(),
        method=on_quiet_processors(pinned, device),
        workloads={workload: run.workloads[workload]},
        proved_on={workload: run.proved_on[workload]},
        systems={case.system: run.systems[case.system] for case in cases},
        environments={name: _environment_here(run.environments[name], device, listener) for name in names},
        cases=cases,
        left_out=(),
    )


def _environment_here(planned: Environment, device: Device, listener: Listener) -> Environment:
    """The environment that was planned, made again where each node has a cache of its own."""
    if planned.external or interpreter_exists(planned):
        return planned
    spec = parse_spec(f"{planned.framework}=={planned.version}", device)
    here = resolve(spec, create_missing=True, report=listener.note)
    if (here.python_version, here.distributions) != (planned.python_version, planned.distributions):
        raise UserError(
            f"{planned.id} has other packages on this node than on the one that planned the run",
            "use a cache that all nodes share: set XDG_CACHE_HOME",
        )
    return here
