"""One launch that measures the machine's limit: how fast it multiplies and copies, in a framework's environment."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.result import Limit, Record
from rnnbench.domain.system import PRECISIONS
from rnnbench.launch.events import Hello, Rates
from rnnbench.launch.job import make_job
from rnnbench.launch.launcher import judge
from rnnbench.launch.noise import changed
from rnnbench.launch.subject import Subject
from rnnbench.launch.turns import Turns
from rnnbench.launch.worker import run_worker


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


def launch_limit(subject: Subject, method: Method) -> Limit:
    """The case's own job, so that everything is set as it is for the rows; only the work is another."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    case = subject.case
    job = make_job("limit", subject, method, inputs="")
    turn = Turns().next()
    ending = run_worker(subject.environment, job, subject.manifest.variables, method.limit_seconds, turn=turn)
    outcome, reason = judge(case, method.threads, ending)
    limit = Limit(
        environment=case.environment,
        device=case.device,
        precision=case.precision,
        started=started,
        outcome=outcome,
        reason=reason,
        stage=ending.stage,
        noisy=changed(turn.before, turn.after, method.noise_threshold),
        traceback=ending.traceback,
        log_tail="" if outcome == "ok" else ending.log.tail(),
    )
    for event in ending.events:
        if isinstance(event, Hello):
            limit = msgspec.structs.replace(
                limit, versions=event.versions, device_name=event.device_name, threads=event.threads
            )
        elif isinstance(event, Rates) and outcome == "ok":
            limit = msgspec.structs.replace(limit, products=event.products, copies=event.copies)
    if outcome == "ok" and not limit.products:
        limit = msgspec.structs.replace(limit, reason=f"{subject.manifest.title}'s folder offers no rates")
    return limit
