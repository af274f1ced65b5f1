"""One launch under a framework's own profiler."""

import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.profile import Operator, Profile
from rnnbench.files import file_name
from rnnbench.launch.events import Event, Hello, Profiled, Unprofiled
from rnnbench.launch.inputs import inputs_of
from rnnbench.launch.job import make_job
from rnnbench.launch.launcher import judge
from rnnbench.launch.subject import Subject
from rnnbench.launch.worker import run_worker
from rnnbench.profile.kinds import counts_by_kind, seconds_by_kind

BATCHES = 2  # distinct ones, fed in turn
TOP = 12  # operators that are kept by name
TRACES = "traces"


def launch_profile(
    subject: Subject,
    method: Method,
    place: Path,
    folder: Path,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Profile:
    """Inputs are written to `place`, the trace into the folder of traces below `folder`."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    case, variables = subject.case, subject.manifest.variables
    inputs = inputs_of(subject.workload, method.seed, place, BATCHES)
    with tempfile.TemporaryDirectory(prefix="rnnbench-trace-") as scratch:
        job = make_job("profile", subject, method, str(inputs), arrays=scratch)
        ending = run_worker(subject.environment, job, variables, method.limit_seconds, on_event)
        outcome, reason = judge(case, method.threads, ending)
        profile = Profile(
            case=case,
            started=started,
            outcome=outcome,
            reason=reason,
            stage=ending.stage,
            versions=next((event.versions for event in ending.events if isinstance(event, Hello)), {}),
            log_tail="" if outcome == "ok" else ending.log.tail(),
        )
        found = next((event for event in ending.events if isinstance(event, Profiled | Unprofiled)), None)
        if outcome != "ok":
            return profile
        if isinstance(found, Unprofiled):
            return msgspec.structs.replace(profile, outcome="none", reason=found.reason)
        if found is None:
            return msgspec.structs.replace(profile, outcome="failed", reason="it was done, but sent no profile")
        trace = _keep(found.trace, Path(scratch), case, folder)
        return msgspec.structs.replace(profile, trace=trace, **of_one_batch(found, case.device == "cuda"))


def of_one_batch(found: Profiled, on_device: bool) -> dict[str, object]:
    """What a worker sent, as a profile has it: counts and times of one batch, and only the longest by name."""
    chosen = found.kernels if on_device else found.operators
    each = [Operator(one.name, one.count / found.batches, one.seconds / found.batches) for one in chosen]
    busy_s = min(found.wall_s, found.kernels_s if on_device else found.operators_s)
    return {
        "batches": found.batches,
        "wall_s": found.wall_s,
        "host_s": found.host_s,
        "profiled_s": found.profiled_s,
        "operators": sum(one.count for one in found.operators) / found.batches,
        "operators_s": found.operators_s,
        "kernels": sum(one.count for one in found.kernels) / found.batches if on_device else None,
        "kernels_s": found.kernels_s if on_device else None,
        "kinds": seconds_by_kind(each, busy_s),
        "counts": counts_by_kind(each),
        "top": tuple(each[:TOP]),
    }


def _keep(trace: str, scratch: Path, case: Case, folder: Path) -> str:
    """The trace's new place, relative to the folder; empty where there is none in the scratch folder."""
    if not Path(trace).is_file() or scratch.resolve() not in Path(trace).resolve().parents:
        return ""
    kept = Path(TRACES) / file_name(f"{case.key}.json.gz")
    (folder / TRACES).mkdir(parents=True, exist_ok=True)
    shutil.move(trace, folder / kept)
    return str(kept)
