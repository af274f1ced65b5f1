"""One launch that measures what a new batch size and a new sequence length cost."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rnnbench.domain.case import Method
from rnnbench.domain.profile import Change, Reshape, Retrace
from rnnbench.domain.workload import Workload
from rnnbench.launch.events import Event, First, Hello, Reshaped
from rnnbench.launch.inputs import inputs_of
from rnnbench.launch.job import make_job, workload_fields
from rnnbench.launch.launcher import judge
from rnnbench.launch.subject import Subject
from rnnbench.launch.worker import run_worker
from rnnbench.profile.watch import BATCHES

CHANGES: tuple[Change, ...] = ("batch", "steps")


def reshaped(workload: Workload, change: Change) -> Workload:
    """One sequence more or one step more: as new a shape as any other, and hardly more work."""
    return msgspec.structs.replace(workload, **{change: getattr(workload, change) + 1})


def launch_retrace(
    subject: Subject,
    method: Method,
    place: Path,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Retrace:
    """Its inputs are written to `place`, once for all rows of a workload."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    variants: list[dict[str, object]] = []
    for change in CHANGES:
        other = reshaped(subject.workload, change)
        inputs = inputs_of(other, method.seed, place, 1)
        variants.append({"change": change, "workload": workload_fields(other), "inputs": str(inputs)})
    own = inputs_of(subject.workload, method.seed, place, BATCHES)
    job = make_job("retrace", subject, method, str(own), variants=variants)
    ending = run_worker(subject.environment, job, subject.manifest.variables, method.limit_seconds, on_event)
    outcome, reason = judge(subject.case, method.threads, ending)
    events = ending.events
    return Retrace(
        case=subject.case,
        started=started,
        outcome=outcome,
        reason=reason,
        stage=ending.stage,
        first_call_s=next((event.seconds for event in events if isinstance(event, First)), None),
        reshapes=tuple(_plain(event) for event in events if isinstance(event, Reshaped)),
        versions=next((event.versions for event in events if isinstance(event, Hello)), {}),
        log_tail="" if outcome == "ok" else ending.log.tail(),
    )


def _plain(event: Reshaped) -> Reshape:
    return Reshape(**msgspec.structs.asdict(event))
