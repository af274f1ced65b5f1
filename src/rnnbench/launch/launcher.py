"""One launch: probe, worker, probe, and the record of what came of it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.result import Launch, Limit, Outcome, Record, is_noisy, speed_changed
from rnnbench.domain.run import Environment
from rnnbench.domain.system import PRECISIONS
from rnnbench.launch.events import STAGES, Built, Event, First, Hello, Memory, Rates, Samples, Warm
from rnnbench.launch.exclusive import ExclusiveMachine
from rnnbench.launch.job import ResolvedCase, make_job
from rnnbench.launch.listener import Listener
from rnnbench.launch.worker import WorkerResult, run_worker
from rnnbench.machine import make_method
from rnnbench.manifests import manifests


def launch_case(
    resolved: ResolvedCase,
    method: Method,
    inputs: Path,
    round_number: int,
    attempt: int,
    listener: Listener,
    turns: ExclusiveMachine,
) -> tuple[Launch, str]:
    """Time one case once. Returns the record and what the worker printed."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    case = resolved.case
    job = make_job("measure", resolved, method, str(inputs))

    def on_event(event: Event) -> None:
        listener.stage(case, STAGES[type(event)])

    turn = turns.next()
    result = run_worker(resolved.environment, job, resolved.manifest.variables, method.limit_seconds, on_event, turn)
    outcome, reason = outcome_of(case, method.threads, result)
    if outcome == "ok" and not any(isinstance(event, Samples) for event in result.events):
        outcome, reason = "failed", "it said it was done, but sent no samples"
    launch = Launch(
        case=case,
        round=round_number,
        attempt=attempt,
        started=started,
        outcome=outcome,
        reason=reason,
        stage=result.stage,
        concurrent_workers=turns.ahead - 1,
        probe_before_s=turn.before,
        probe_after_s=turn.after,
        traceback=result.traceback,
        log_tail="" if outcome == "ok" else result.log.tail(),
    )
    launch = msgspec.structs.replace(launch, **_facts(result.events))
    return msgspec.structs.replace(launch, noisy=is_noisy(launch, method.noise_threshold)), result.log.text()


def outcome_of(case: Case, threads: int, result: WorkerResult) -> tuple[Outcome, str]:
    """A worker's own result, unless it did not do what it was told to."""
    disobeyed = disobedience(case, threads, result)
    if result.outcome == "ok" and disobeyed:
        return "failed", disobeyed
    return result.outcome, result.reason


def disobedience(case: Case, threads: int, result: WorkerResult) -> str:
    """Another device or another number of threads than was asked for; empty when all is as told."""
    for event in result.events:
        if isinstance(event, Hello | Built) and event.device != case.device:
            return f"asked for {case.device}, but it ran on {event.device}"
        if isinstance(event, Hello) and event.threads not in (None, threads):
            return f"asked for {threads} threads, but it has {event.threads}"
    return ""


def _facts(events: list[Event]) -> dict[str, Any]:
    """The events' contents under the names the record has for them."""
    facts: dict[str, Any] = {}
    for event in events:
        if isinstance(event, Hello):
            facts |= {"import_s": event.import_s, "versions": event.versions}
            facts |= {"device_name": event.device_name, "threads": event.threads}
        elif isinstance(event, Built):
            facts |= {"build_s": event.seconds, "parameter_count": event.parameters}
        elif isinstance(event, First):
            facts |= {"first_call_s": event.seconds}
        elif isinstance(event, Warm):
            facts |= {"warm_batches": event.batches, "warm_seconds": event.seconds}
        elif isinstance(event, Samples):
            facts |= {"samples": event.samples, "device_seconds": event.device_seconds}
            facts |= {"gpu_before": event.gpu_before, "gpu_after": event.gpu_after}
        elif isinstance(event, Memory):
            facts |= {"peak_host_bytes": event.host, "peak_device_bytes": event.device}
    return facts


def limits_needed(cases: Sequence[Case], records: Iterable[Record], retry_failed: bool = False) -> list[Case]:
    """A case for each environment, device and precision whose limit is not known: any of them, they share it.

    On CUDA all precisions, whichever the rows have.
    """
    known = {
        record.key for record in records if isinstance(record, Limit) and not (retry_failed and record.outcome != "ok")
    }
    needed: dict[tuple[str, str, str], Case] = {}
    for case in cases:
        # What a GPU does in its three precisions is far apart: whoever reads of one asks for the others.
        for precision in PRECISIONS if case.device == "cuda" else (case.precision,):
            key = (case.environment, case.device, precision)
            if key not in known:
                needed.setdefault(key, msgspec.structs.replace(case, precision=precision))
    return list(needed.values())


def launch_limit(resolved: ResolvedCase, method: Method) -> Limit:
    """The case's own job, so that everything is set as it is for the rows; only the work is another."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    case = resolved.case
    job = make_job("limit", resolved, method, inputs="")
    turn = ExclusiveMachine().next()
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
        noisy=speed_changed(turn.before, turn.after, method.noise_threshold),
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
    if outcome == "ok" and not limit.products:
        limit = msgspec.structs.replace(limit, reason=f"{resolved.manifest.title}'s folder offers no rates")
    return limit


_SECONDS = 120.0  # the slowest import takes twenty, from a cold disk


def why_not_started(environment: Environment) -> str:
    """Empty when it starts."""
    manifest = manifests().get(environment.framework)
    if manifest is None:
        return f"no manifest is for {environment.framework}"
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
    result = run_worker(environment, job, manifest.variables, _SECONDS)
    return "" if result.outcome == "ok" else f"{result.outcome} during {result.stage}: {result.reason}"
