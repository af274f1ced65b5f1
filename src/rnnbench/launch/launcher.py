"""One launch: probe, worker, probe, and the record of what came of it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.result import Launch, Outcome
from rnnbench.launch.events import STAGES, Built, Event, First, Hello, Memory, Samples, Warm
from rnnbench.launch.job import make_job
from rnnbench.launch.listener import Listener
from rnnbench.launch.noise import is_noisy
from rnnbench.launch.subject import Subject
from rnnbench.launch.turns import Turns
from rnnbench.launch.worker import Ending, run_worker


def launch_case(
    subject: Subject,
    method: Method,
    inputs: Path,
    round_number: int,
    attempt: int,
    listener: Listener,
    turns: Turns,
) -> tuple[Launch, str]:
    """Time one case once. Returns the record and what the worker printed."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    case = subject.case
    job = make_job("measure", subject, method, str(inputs))

    def on_event(event: Event) -> None:
        listener.stage(case, STAGES[type(event)])

    turn = turns.next()
    ending = run_worker(subject.environment, job, subject.manifest.variables, method.limit_seconds, on_event, turn)
    outcome, reason = judge(case, method.threads, ending)
    if outcome == "ok" and not any(isinstance(event, Samples) for event in ending.events):
        outcome, reason = "failed", "it said it was done, but sent no samples"
    launch = Launch(
        case=case,
        round=round_number,
        attempt=attempt,
        started=started,
        outcome=outcome,
        reason=reason,
        stage=ending.stage,
        wall_clock_s=round(ending.seconds, 3),
        beside=turns.ahead - 1,
        probe_before_s=turn.before,
        probe_after_s=turn.after,
        traceback=ending.traceback,
        log_tail="" if outcome == "ok" else ending.log.tail(),
    )
    launch = msgspec.structs.replace(launch, **_facts(ending.events))
    return msgspec.structs.replace(launch, noisy=is_noisy(launch, method.noise_threshold)), ending.log.text()


def judge(case: Case, threads: int, ending: Ending) -> tuple[Outcome, str]:
    """A worker's own ending, unless it did not do what it was told to."""
    disobeyed = disobedience(case, threads, ending)
    if ending.outcome == "ok" and disobeyed:
        return "failed", disobeyed
    return ending.outcome, ending.reason


def disobedience(case: Case, threads: int, ending: Ending) -> str:
    """Another device or another number of threads than was asked for; empty when all is as told."""
    for event in ending.events:
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
