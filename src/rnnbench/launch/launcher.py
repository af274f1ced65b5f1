"""Single launches and the records made of them: timing a case, measuring the machine's limit, a trial start."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.noise import is_noisy, speed_changed
from rnnbench.domain.result import Figure, Launch, Limit, Outcome
from rnnbench.domain.run import Environment
from rnnbench.domain.system import PRECISIONS
from rnnbench.domain.workload import parameter_count
from rnnbench.launch.arrays import DamagedArrays
from rnnbench.launch.events import STAGES, Arrays, Built, Event, First, Hello, Memory, Rates, Samples, Unseen, Warm
from rnnbench.launch.exclusive import ExclusiveMachine
from rnnbench.launch.job import ResolvedCase, is_watched, make_job
from rnnbench.launch.listener import Listener
from rnnbench.launch.plausible import implausible
from rnnbench.launch.worker import WorkerResult, run_worker
from rnnbench.manifests import manifests, may_offer
from rnnbench.method import make_method
from rnnbench.scratch import scratch_folder


class Check(Protocol):
    """A judge of what a timed program delivers."""

    request: dict[str, object]  # what the program is to deliver

    def judge(self, delivered: Mapping[str, str], folder: Path) -> tuple[tuple[Figure, ...], str]:
        """The figures, and in words what was checked. Raises DamagedArrays if a file cannot be read."""


def launch_case(
    resolved: ResolvedCase,
    method: Method,
    inputs: Path,
    round_number: int,
    attempt: int,
    listener: Listener,
    machine: ExclusiveMachine,
    check: Check | None = None,
) -> tuple[Launch, str]:
    """Time one case once, with a probe of the machine before and after. Returns the record and the worker's output.

    `check` judges what the timed program computed at full size; None: nothing is asked for.
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    case = resolved.case
    watched = is_watched(case, method)
    turn = machine.next(probes=not watched)

    def on_event(event: Event) -> None:
        listener.stage(case, STAGES[type(event)])

    with scratch_folder("arrays") as folder:
        request = check.request if check else None
        job = make_job(
            "measure", resolved, method, str(inputs), arrays=folder, check=request, full_speed_s=machine.full_speed_s
        )
        result = run_worker(
            resolved.environment, job, resolved.manifest.variables, method.limit_seconds, on_event, turn
        )
        outcome, reason = outcome_of(case, method.threads, result)
        if outcome == "ok":
            reason = _disbelief(result, parameter_count(resolved.workload, resolved.system.biases))
            outcome = "failed" if reason else "ok"
        launch = Launch(
            case=case,
            round=round_number,
            attempt=attempt,
            started=started,
            outcome=outcome,
            reason=reason,
            stage=result.stage,
            concurrent_workers=machine.ahead - 1,
            probe_before_s=turn.probe_before_s,
            probe_after_s=turn.probe_after_s,
            probe_best_s=turn.probe_best_s,
            traceback=result.traceback,
            log_tail="" if outcome == "ok" else result.log.tail(),
        )
        launch = msgspec.structs.replace(launch, **_launch_fields(result.events))
        for event in result.events:
            if isinstance(event, Samples) and event.full_speed_s:
                machine.full_speeds.append(event.full_speed_s)
        if check is not None and outcome == "ok":
            listener.stage(case, "comparing")
            with machine.untimed():  # it takes all processors
                launch = _checked(launch, check, result, Path(folder))
    return msgspec.structs.replace(launch, noisy=is_noisy(launch, method.noise_threshold)), result.log.text()


def _checked(launch: Launch, check: Check, result: WorkerResult, folder: Path) -> Launch:
    start = time.monotonic()
    delivered = {event.name: event.path for event in result.events if isinstance(event, Arrays)}
    try:
        figures, words = check.judge(delivered, folder)
    except DamagedArrays as error:
        return msgspec.structs.replace(launch, outcome="failed", reason=f"its arrays cannot be read: {error}")
    spent = launch.check_s + time.monotonic() - start
    return msgspec.structs.replace(launch, checks=figures, checked=words, check_s=round(spent, 3))


def _disbelief(result: WorkerResult, parameters: int) -> str:
    """Why a worker that ended well is not believed; empty if it is."""
    if not any(isinstance(event, Samples) for event in result.events):
        return "it said it was done, but sent no samples"
    for event in result.events:
        if isinstance(event, Built) and event.parameters != parameters:
            return f"it has {event.parameters:,} parameters, and the workload has {parameters:,}"
    return implausible(result.events, result.arrivals)


def outcome_of(case: Case, threads: int, result: WorkerResult) -> tuple[Outcome, str]:
    """The worker's outcome and reason; a failure if it used another device or number of threads than requested."""
    deviation = deviation_from_request(case, threads, result)
    if result.outcome == "ok" and deviation:
        return "failed", deviation
    return result.outcome, result.reason


def deviation_from_request(case: Case, threads: int, result: WorkerResult) -> str:
    """How the device or the number of threads differs from what was requested; empty when they agree."""
    for event in result.events:
        if isinstance(event, Hello | Built) and event.device != case.device:
            return f"asked for {case.device}, but it ran on {event.device}"
        if isinstance(event, Hello) and event.threads not in (None, threads):
            return f"asked for {threads} threads, but it has {event.threads}"
    return ""


def _launch_fields(events: list[Event]) -> dict[str, Any]:
    """The events' contents, under the names of the fields of `Launch`."""
    fields: dict[str, Any] = {}
    for event in events:
        if isinstance(event, Hello):
            fields |= {"import_s": event.import_s, "versions": event.versions}
            fields |= {"device_name": event.device_name, "threads": event.threads}
        elif isinstance(event, Built):
            fields |= {"build_s": event.seconds, "parameter_count": event.parameters}
        elif isinstance(event, First):
            fields |= {"first_call_s": event.seconds}
        elif isinstance(event, Warm):
            fields |= {"warm_batches": event.batches, "warm_seconds": event.seconds}
        elif isinstance(event, Samples):
            fields |= {"samples": event.samples, "steady": event.steady, "device_seconds": event.device_seconds}
            fields |= {"gpu_before": event.gpu_before, "gpu_after": event.gpu_after}
            fields |= {"usage_s": event.usage_s, "cpu_s": event.cpu_s, "others_cpu_s": event.others_cpu_s}
            fields |= {"involuntary_switches": event.involuntary_switches}
            if event.quiet is not None:
                fields |= {"quiet": event.quiet, "set_aside_blocks": event.set_aside_blocks}
                fields |= {"set_aside_s": event.set_aside_s, "device_paced_blocks": event.device_paced_blocks}
                fields |= {"probe_best_s": event.probe_best_s}
                fields |= {"probe_before_s": event.probe_before_s, "probe_after_s": event.probe_after_s}
        elif isinstance(event, Unseen):
            fields |= {"check_s": event.check_s, "seen_s": event.seen_s, "unseen_s": event.seconds}
        elif isinstance(event, Memory):
            fields |= {"peak_host_bytes": event.host, "peak_device_bytes": event.device}
            fields |= {"how_it_ran": event.how_it_ran}
    return fields


def limits_needed(cases: Sequence[Case], limits: Sequence[Limit]) -> list[Case]:
    """One case for each environment, device and precision whose limit is not known yet.

    A framework without code that measures it is asked once, not for every precision. On CUDA every precision is
    measured, because a GPU's limits differ so much that a reader of one wants to know the others; those that no case
    has are measured by one environment.
    """
    known = {limit.key for limit in limits}
    silent = {limit.environment for limit in limits if has_no_rates(limit)}
    needed: dict[tuple[str, str, str], Case] = {}
    for case in cases:
        needed.setdefault((case.environment, case.device, case.precision), case)
    covered = {(device, precision) for _, device, precision in needed}
    covered |= {(limit.device, limit.precision) for limit in limits if limit.products}
    for case in cases:
        for precision in PRECISIONS if case.device == "cuda" else ():
            key = (case.environment, case.device, precision)
            if key[1:] not in covered and key not in known and case.environment not in silent:
                covered.add(key[1:])
                needed[key] = msgspec.structs.replace(case, precision=precision)
    return [case for key, case in needed.items() if key not in known and case.environment not in silent]


def has_no_rates(limit: Limit) -> bool:
    return limit.outcome == "ok" and not limit.products


def launch_limit(resolved: ResolvedCase, method: Method) -> Limit:
    """Measure the limit with the case's own job, so that all settings are those of the timed launches."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    case = resolved.case
    silent = f"{resolved.manifest.title} has no code that measures the limit"
    if not may_offer(resolved.manifest, "rates"):  # starting a framework to ask it takes seconds
        return Limit(
            environment=case.environment,
            device=case.device,
            precision=case.precision,
            started=started,
            outcome="ok",
            reason=silent,
        )
    job = make_job("limit", resolved, method, inputs="")
    turn = ExclusiveMachine(cpus=method.cpus).next()
    result = run_worker(resolved.environment, job, resolved.manifest.variables, method.limit_seconds, turn=turn)
    outcome, reason = outcome_of(case, method.threads, result)
    limit = Limit(
        environment=case.environment,
        device=case.device,
        precision=case.precision,
        started=started,
        outcome=outcome,
        reason=reason,
        stage=result.stage,
        noisy=speed_changed(turn.probe_before_s, turn.probe_after_s, method.noise_threshold),
        traceback=result.traceback,
        log_tail="" if outcome == "ok" else result.log.tail(),
    )
    for event in result.events:
        if isinstance(event, Hello):
            limit = msgspec.structs.replace(
                limit, versions=event.versions, device_name=event.device_name, threads=event.threads
            )
        elif isinstance(event, Rates) and outcome == "ok":
            limit = msgspec.structs.replace(limit, products=event.products, copies=event.copies)
    if has_no_rates(limit):
        limit = msgspec.structs.replace(limit, reason=silent)
    return limit


_START_LIMIT_S = 120.0  # the slowest import takes twenty, from a cold disk


def start_failure(environment: Environment) -> str:
    """Start the environment's framework in a worker and return why that failed; empty when it started."""
    manifest = manifests().get(environment.framework)
    if manifest is None:
        return f"there is no manifest for {environment.framework}"
    system, workload = manifest.system[0], CATALOG["ce-short"]
    case = Case(
        workload=workload.name,
        system=system.name,
        phase="forward",
        device="cpu",
        precision="fp32",
        environment=environment.id,
    )
    resolved = ResolvedCase(case=case, workload=workload, system=system, manifest=manifest, environment=environment)
    job = make_job("start", resolved, make_method(), "")
    result = run_worker(environment, job, manifest.variables, _START_LIMIT_S)
    return "" if result.outcome == "ok" else f"{result.outcome} during {result.stage}: {result.reason}"
