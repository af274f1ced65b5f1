"""A run from beginning to end: plan, prepare, verify, limits, launch, profile.

Everything a step produces is stored before the next one begins. A run that was interrupted is resumed from its folder,
by the same steps: each does only what the folder still lacks.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.profile import Profile, ProfileRecord, Retrace
from rnnbench.domain.result import Launch, Limit, Verification
from rnnbench.domain.run import Run
from rnnbench.domain.system import Device
from rnnbench.environments.environment import arithmetic_variables
from rnnbench.environments.holding import held
from rnnbench.errors import UserError, describe_os_error
from rnnbench.estimate import keep_rate
from rnnbench.files import file_name
from rnnbench.last_run import remember_run
from rnnbench.launch.busy import describe_change, describe_load, describe_load_before
from rnnbench.launch.events import STAGES, Event
from rnnbench.launch.exclusive import ExclusiveMachine
from rnnbench.launch.job import ResolvedCase, resolve_case, write_timed_inputs
from rnnbench.launch.launcher import launch_case, launch_limit, limits_needed
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.launch.probe import BestProbe, fastest_probe, on_quiet_processors
from rnnbench.launch.schedule import launches_left, run_schedule
from rnnbench.machine import describe_machine
from rnnbench.manifests import describe_tool
from rnnbench.plan import Plan, Selection, make_plan, within_memory
from rnnbench.profile import launch_profile, launch_retrace
from rnnbench.resuming import (
    require_frameworks,
    require_known_interpreters,
    require_same_cells,
    require_same_environments,
    require_same_programs,
    require_trusted_cells,
)
from rnnbench.scratch import scratch_folder, sweep
from rnnbench.store import Contents, append, create_folder, log_name, read_folder, require_usable, sole_use, write_log
from rnnbench.verify.full_size import full_size_checks
from rnnbench.verify.proofs import proofs_for, small_version, verification_jobs
from rnnbench.verify.verifier import run_proofs

ProfilePart = Literal["operators", "shapes"]
PROFILE_PARTS: tuple[ProfilePart, ...] = ("operators", "shapes")
_PART_OF_RECORD: dict[type[ProfileRecord], ProfilePart] = {Profile: "operators", Retrace: "shapes"}


class MoreLaunches(NamedTuple):
    """Cases of a run whose launches differ much or were noisy, and how many launches each is to have."""

    cases: tuple[Case, ...]
    launches: int


def run(
    chosen: Selection | Plan,
    method: Method,
    folder: Path,
    listener: Listener,
    *,
    command: Sequence[str] = (),
    data: str = "",
    profile: bool = False,
) -> Contents:
    """A new run in a new folder, with everything from the plan to the last launch."""
    plan = chosen if isinstance(chosen, Plan) else make_plan(chosen)
    begin_run(plan, method, folder, listener, command=command, data=data, profile=profile)
    remember_run(folder)
    return resume(folder, listener, trust=True)  # its interpreters were found here a moment ago


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
    """Prepare the environments, then create the run's folder. From then on an interruption loses nothing."""
    require_usable(folder)  # checked first, because creating environments takes minutes
    for workload in plan.workloads.values():
        if workload.one_step:
            raise UserError(
                f"{workload.name} cannot be timed: a single step is too short to measure",
                "see its graph with `rnnbench graph`, or verify it with `rnnbench verify -w elman-step`",
            )
    machine = describe_machine()  # before environments are created: that load is no other's
    prepared = prepare(within_memory(plan, method), listener)
    device: Device = "cuda" if all(case.device == "cuda" for case in prepared.cases) else "cpu"
    quiet = on_quiet_processors(method, device)
    new_run = Run(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=tuple(word.encode("utf-8", "replace").decode() for word in command),  # a path may be any bytes
        tool=describe_tool(),
        machine=msgspec.structs.replace(machine, probe_s=fastest_probe(quiet.cpus)),
        method=quiet,
        data=data,
        workloads=plan.workloads,
        proved_on={name: small_version(workload).name for name, workload in plan.workloads.items()},
        systems=plan.systems,
        environments=prepared.environments,
        cases=prepared.cases,
        left_out=prepared.left_out,
        variables=arithmetic_variables(),
        profile=profile,
    )
    create_folder(folder, new_run)
    return new_run


def resume(
    folder: Path,
    listener: Listener,
    *,
    retry_failed: bool = False,
    limit_seconds: float | None = None,
    ahead: int | None = None,
    repeats: int | None = None,
    more: MoreLaunches | None = None,
    trust: bool = False,
) -> Contents:
    """Do what the folder's run still lacks: everything for a new run, the rest for one that was interrupted.

    Without `trust`, only interpreters that are known here are started: a run folder may come from elsewhere.
    The time limit, the number of concurrent workers and how often a noisy launch is repeated may be changed, because
    none of them changes what is measured. With `more`, some cases get more launches than the run has, and no other any.
    """
    sweep()
    with sole_use(folder):
        session = Session(folder, listener, retry_failed, limit_seconds, ahead, repeats, more)
        for line in session.damaged:
            listener.note(f"launches.jsonl, {line}: skipped")
        require_frameworks(session.run)
        if not trust:
            require_known_interpreters(session.run)
            require_trusted_cells(session.run)
        require_same_cells(session.run)
        with held(session.run.environments.values()):
            session.require_unchanged()
            session.name_other_load()
            session.verify()
            session.measure_limits()
            session.launch()
            if session.run.profile:
                session.profile()
    return read_folder(folder)


def verify_run(folder: Path, listener: Listener, *, retry_failed: bool = False) -> None:
    """Only verify the cases of a run: they are timed elsewhere."""
    sweep()
    with sole_use(folder):
        session = Session(folder, listener, retry_failed)
        with held(session.run.environments.values()):
            session.require_unchanged()
            session.verify()


def profile_run(
    folder: Path,
    listener: Listener,
    *,
    parts: Collection[ProfilePart] = PROFILE_PARTS,
    retry_failed: bool = False,
    limit_seconds: float | None = None,
    resumed: bool = False,
    trust: bool = False,
) -> None:
    """Profile the cases of a run that have no profile yet. Only the machine's limit is timed, if it is not known."""
    sweep()
    with sole_use(folder):
        session = Session(folder, listener, retry_failed, limit_seconds)
        if resumed:
            require_frameworks(session.run)
            if not trust:
                require_known_interpreters(session.run)
                require_trusted_cells(session.run)
            require_same_cells(session.run)
        with held(session.run.environments.values()):
            if resumed:
                require_same_environments(session.run)
                require_same_programs(session.run)
            if "operators" in parts:
                session.measure_limits()  # the rate of the products means little without the machine's
            session.profile(parts)


class Session:
    """The steps of one run. Each reads from the run's folder what earlier steps stored, and stores its own results."""

    def __init__(
        self,
        folder: Path,
        listener: Listener,
        retry_failed: bool = False,
        limit_seconds: float | None = None,
        ahead: int | None = None,
        repeats: int | None = None,
        more: MoreLaunches | None = None,
    ) -> None:
        contents = read_folder(folder)
        stored = contents.run.method
        method = msgspec.structs.replace(
            stored,
            limit_seconds=limit_seconds or stored.limit_seconds,
            ahead=ahead or stored.ahead,
            repeats=stored.repeats if repeats is None else repeats,
            launches=stored.launches if more is None else more.launches,
        )
        cases = contents.run.cases if more is None else more.cases
        self.run = msgspec.structs.replace(contents.run, method=method, cases=cases)
        self.damaged = contents.damaged
        self._folder = folder
        self._listener = listener
        self._retry_failed = retry_failed
        self._records = contents.records
        self._profiles = contents.profiles

    def require_unchanged(self) -> None:
        """Raise a UserError unless records that are there and those to come are of the same programs."""
        if self._records:
            require_same_environments(self.run)
            require_same_programs(self.run)

    def name_other_load(self) -> None:
        """Say what else this machine computes, and whether it has become another one, before anything is measured."""
        if not self._launches_left():
            return
        is_resumed = any(isinstance(record, Launch) for record in self._records)
        machine = self.run.machine
        earlier = describe_change(machine, self.run.method) if is_resumed else describe_load_before(machine)
        for what in filter(None, (describe_load(), earlier)):
            self._listener.note(f"warning: {what}")

    def verify(self) -> None:
        """Verify every system on a small workload, before anything is timed. Stored verdicts of the run are kept."""
        run = self.run
        if not run.method.verify:
            return
        verified = {
            record.case.key
            for record in self._records
            if isinstance(record, Verification) and not self._will_retry(record.verdict)
        }
        proofs = [
            proof
            for proof in proofs_for(run.cases, run.workloads, run.systems, run.environments)
            if not all(case.key in verified for case in proof.cases)
        ]
        self._listener.verifying(sum(len(proof.cases) for proof in proofs))

        def keep(verification: Verification) -> None:
            append(self._folder, verification)
            self._listener.verified(verification)

        run_proofs(proofs, run.method, verification_jobs(run.cases), keep)

    def measure_limits(self) -> None:
        """Measure the machine's limit once per environment, device and precision. A failure is stored too."""
        known = [
            record
            for record in self._records
            if isinstance(record, Limit) and not (self._retry_failed and record.outcome != "ok")
        ]
        self._listener.measuring_limits(len(limits_needed(self.run.cases, known)))
        while needed := limits_needed(self.run.cases, known):
            case = needed[0]
            try:
                limit = launch_limit(self._resolve(case), self.run.method)
            except OSError as error:
                limit = Limit(
                    environment=case.environment,
                    device=case.device,
                    precision=case.precision,
                    started=datetime.now(UTC).isoformat(timespec="seconds"),
                    outcome="failed",
                    reason=f"it cannot be started: {describe_os_error(error)}",
                    stage="start",
                )
            append(self._folder, limit)
            keep_rate(limit, self.run.method.threads)
            self._listener.limit_measured(limit)
            known.append(limit)

    def launch(self) -> None:
        """Time every case, in rounds over all cases."""
        run = self.run
        earlier, left = self._earlier_launches(), self._launches_left()
        self._listener.timing(len(left))
        best = BestProbe.of_machine(run.method.cpus)
        machine = ExclusiveMachine(run.method.ahead, run.method.cpus, best)

        logs: dict[str, str] = {}  # what a worker printed, by the name of its file, until its launch is stored

        def keep(launch: Launch) -> None:
            append(self._folder, launch)  # before its log: a disk that is full should lose the log, not the launch
            try:
                write_log(self._folder, launch.log, logs.pop(launch.log, ""))
            except OSError as error:
                self._listener.note(f"warning: cannot write {launch.log}: {error.strerror}")
            self._listener.launched(launch)

        with scratch_folder("inputs") as scratch:
            # Written before anything is timed, once per workload, and only for launches that are left.
            data = Path(run.data) if run.data else None
            inputs = {
                name: write_timed_inputs(run.workloads[name], run.method.seed, Path(scratch), data=data)
                for name in {case.workload for case in left}
            }
            checks = full_size_checks(run, left, self._listener.note)

            def execute(case: Case, round_number: int, attempt: int) -> Launch:
                self._listener.launching(case, round_number)
                started = datetime.now(UTC).isoformat(timespec="seconds")
                try:
                    launch, log = launch_case(
                        self._resolve(case),
                        run.method,
                        inputs[case.workload],
                        round_number,
                        attempt,
                        self._listener,
                        machine,
                        checks.get(case.key) if round_number == 0 else None,
                    )
                except OSError as error:  # its interpreter is gone, or there is no room for it: other rows go on
                    reason = f"it cannot be started: {describe_os_error(error)}"
                    failed = Launch(case=case, round=round_number, started=started, outcome="failed", reason=reason)
                    launch, log = msgspec.structs.replace(failed, attempt=attempt, stage="start"), ""
                if log.strip():
                    name = log_name(self._folder, file_name(f"{case.key}_{round_number}-{attempt}.log"))
                    logs[name] = log
                    launch = msgspec.structs.replace(launch, log=name)
                return launch

            try:
                run_schedule(run.cases, run.method, earlier, execute, keep)
            finally:
                best.keep()

    def profile(self, parts: Collection[ProfilePart] = PROFILE_PARTS) -> None:
        """Profile every case: its operators, and what new shapes cost. These launches yield no samples."""
        done = {
            (record.case.key, _PART_OF_RECORD[type(record)])
            for record in self._profiles
            if not self._will_retry(record.outcome)
        }
        left = [
            (case, part)
            for case in self.run.cases
            for part in PROFILE_PARTS
            if part in parts and (case.key, part) not in done
        ]
        self._listener.profiling(len(left))
        with scratch_folder("inputs") as scratch:
            for case, part in left:
                record = self._launch_profile(case, part, Path(scratch))
                append(self._folder, record)
                self._listener.profiled(record)

    def _launch_profile(self, case: Case, part: ProfilePart, scratch: Path) -> ProfileRecord:
        def on_event(event: Event) -> None:
            self._listener.stage(case, STAGES[type(event)])

        self._listener.stage(case, "starting")
        resolved, method = self._resolve(case), self.run.method
        if part == "shapes":
            return launch_retrace(resolved, method, scratch, on_event)
        return launch_profile(resolved, method, scratch, self._folder, on_event)

    def _earlier_launches(self) -> list[Launch]:
        """The launches made before the run was resumed, without those that are to be tried again."""
        earlier = [record for record in self._records if isinstance(record, Launch)]
        return [one for one in earlier if one.outcome == "ok" or not self._retry_failed]

    def _launches_left(self) -> list[Case]:
        return launches_left(self.run.cases, self.run.method, self._earlier_launches())

    def _will_retry(self, outcome: str) -> bool:
        return self._retry_failed and outcome in ("failed", "timeout")

    def _resolve(self, case: Case) -> ResolvedCase:
        return resolve_case(case, self.run.workloads, self.run.systems, self.run.environments)
