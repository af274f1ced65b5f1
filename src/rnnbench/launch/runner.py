"""A whole run: environments, verification, the machine's limit, launches in rounds, each stored as it comes."""

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.result import Launch, Verification
from rnnbench.environments.environment import fingerprint
from rnnbench.environments.inspect import inspect_python
from rnnbench.errors import UserError
from rnnbench.files import file_name
from rnnbench.launch.inputs import inputs_of
from rnnbench.launch.launcher import launch_case
from rnnbench.launch.limits import launch_limit, limits_needed
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.launch.schedule import launches_left, run_schedule
from rnnbench.launch.subject import find_subject
from rnnbench.launch.turns import Turns
from rnnbench.machine import describe_machine
from rnnbench.manifests import manifests
from rnnbench.plan import Plan
from rnnbench.profile.session import profile_run
from rnnbench.source import describe_tool
from rnnbench.store.folder import Contents, append, create_folder, read_folder, require_empty, sole_use, write_log
from rnnbench.store.run import Run
from rnnbench.verify.proofs import proofs_for, verification_jobs
from rnnbench.verify.small import small_version
from rnnbench.verify.verifier import prove

BATCHES = 4  # distinct ones, fed in turn


def begin_run(
    plan: Plan,
    method: Method,
    folder: Path,
    listener: Listener,
    *,
    command: Sequence[str] = (),
    data: str = "",
    profile: bool = False,
) -> Run:
    """Make the environments, then the folder: from here on nothing is lost."""
    require_empty(folder)  # told now, not after the environments are made
    for workload in plan.workloads.values():
        if workload.one_step:
            raise UserError(
                f"{workload.name} is not timed: the step is over before a clock can tell",
                "see what it becomes with `rnnbench graph`, prove it with `rnnbench verify -w elman-step`",
            )
    ready = prepare(plan, listener)
    run = Run(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=tuple(command),
        tool=describe_tool(),
        machine=describe_machine(),
        method=method,
        data=data,
        workloads=plan.workloads,
        proved_on={name: small_version(workload).name for name, workload in plan.workloads.items()},
        systems=plan.systems,
        environments=ready.environments,
        cases=ready.cases,
        left_out=ready.left_out,
        profile=profile,
    )
    create_folder(folder, run)
    return run


def continue_run(
    folder: Path,
    listener: Listener,
    *,
    retry_failed: bool = False,
    limit_seconds: float | None = None,
    ahead: int | None = None,
) -> Contents:
    """Do what the folder's run still lacks. The same for a new run and for one that was interrupted.

    The time limit and the workers at once may be others than it was begun with: neither changes what is measured.
    """
    with sole_use(folder):
        run = _continue(folder, listener, retry_failed, limit_seconds, ahead)
    if run.profile:
        profile_run(folder, listener, retry_failed=retry_failed, limit_seconds=limit_seconds)
    return read_folder(folder)


def _continue(
    folder: Path, listener: Listener, retry_failed: bool, limit_seconds: float | None, ahead: int | None
) -> Run:
    contents = read_folder(folder)
    for line in contents.damaged:
        listener.note(f"launches.jsonl, {line}: skipped")
    begun = contents.run.method
    method = msgspec.structs.replace(
        begun, limit_seconds=limit_seconds or begun.limit_seconds, ahead=ahead or begun.ahead
    )
    run = msgspec.structs.replace(contents.run, method=method)
    contents = msgspec.structs.replace(contents, run=run)
    require_frameworks(run)
    if contents.records:
        require_unchanged(run, listener)
    if run.method.verify:
        _verify(folder, contents, listener, retry_failed)
    _limits(folder, contents, listener, retry_failed)
    launches = [record for record in contents.records if isinstance(record, Launch)]
    if retry_failed:
        launches = [launch for launch in launches if launch.outcome == "ok"]
    left = launches_left(run.cases, run.method, launches)
    listener.measuring(len(left))
    turns = Turns(run.method.ahead)

    def keep(launch: Launch) -> None:
        append(folder, launch)
        listener.launched(launch)

    with tempfile.TemporaryDirectory(prefix="rnnbench-inputs-") as place:
        # Written before anything is timed, once for all rows of a workload, and only for what is left to do.
        data = Path(run.data) if run.data else None
        inputs = {
            name: inputs_of(run.workloads[name], run.method.seed, Path(place), BATCHES, data=data)
            for name in {case.workload for case in left}
        }

        def execute(case: Case, round_number: int, attempt: int) -> Launch:
            listener.launching(case, round_number)
            subject = find_subject(case, run.workloads, run.systems, run.environments)
            launch, log = launch_case(
                subject, run.method, inputs[case.workload], round_number, attempt, listener, turns
            )
            if log.strip():
                name = file_name(f"{case.key}_{round_number}-{attempt}.log")
                launch = msgspec.structs.replace(launch, log=write_log(folder, name, log))
            return launch

        run_schedule(run.cases, run.method, launches, execute, keep)
    return run


def require_frameworks(run: Run) -> None:
    lacking = sorted({case.framework for case in run.cases} - set(manifests()))
    if lacking:
        raise UserError(
            f"this run needs {', '.join(lacking)}, which is not among the frameworks here",
            "let RNNBENCH_SYSTEMS name its folder, or install the package that offers it",
        )


def require_unchanged(run: Run, listener: Listener) -> None:
    """A resumed run goes on in the environments it began in, or not at all."""
    for environment in run.environments.values():
        now = inspect_python(Path(environment.python), used=environment.used)
        if fingerprint(now) != environment.fingerprint:
            raise UserError(
                f"the environment {environment.id} has changed since this run began",
                "start a new run: rows from two environments must not share a name",
            )
    if describe_tool().worker != run.tool.worker:
        listener.note("warning: the worker's source has changed since this run began")


def _verify(folder: Path, contents: Contents, listener: Listener, retry_failed: bool) -> None:
    """Before anything is timed. What an earlier part of the run has judged already stands."""
    run = contents.run
    judged = {
        record.case.key
        for record in contents.records
        if isinstance(record, Verification) and not (retry_failed and record.verdict in ("failed", "timeout"))
    }
    proofs = [
        proof
        for proof in proofs_for(run.cases, run.workloads, run.systems, run.environments)
        if not all(case.key in judged for case in proof.cases)
    ]
    listener.verifying(sum(len(proof.cases) for proof in proofs))

    def on_result(verification: Verification) -> None:
        append(folder, verification)
        listener.verified(verification)

    prove(proofs, run.method, verification_jobs(run.cases), on_result)


def _limits(folder: Path, contents: Contents, listener: Listener, retry_failed: bool) -> None:
    """Once for each environment, device and precision; one that fails leaves its reason and nothing else."""
    run = contents.run
    needed = limits_needed(run.cases, contents.records, retry_failed)
    listener.limiting(len(needed))
    for case in needed:
        limit = launch_limit(find_subject(case, run.workloads, run.systems, run.environments), run.method)
        append(folder, limit)
        listener.limited(limit)
