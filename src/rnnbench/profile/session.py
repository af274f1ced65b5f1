"""Profiling the cases of a run: what each still lacks, one launch at a time, each stored as it comes."""

import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Literal

import msgspec

from rnnbench.domain.case import Case
from rnnbench.domain.profile import Profile, ProfileRecord, Retrace
from rnnbench.launch.events import STAGES, Event
from rnnbench.launch.listener import Listener
from rnnbench.launch.subject import find_subject
from rnnbench.profile.retrace import launch_retrace
from rnnbench.profile.watch import launch_profile
from rnnbench.store.folder import append, read_folder, sole_use
from rnnbench.store.run import Run

Part = Literal["operators", "shapes"]
PARTS: tuple[Part, ...] = ("operators", "shapes")
_PART_OF: dict[type[ProfileRecord], Part] = {Profile: "operators", Retrace: "shapes"}


def profile_run(
    folder: Path,
    listener: Listener,
    *,
    parts: Collection[Part] = PARTS,
    retry_failed: bool = False,
    limit_seconds: float | None = None,
) -> None:
    """Nothing is timed here that a table of times would show; what is there already is not done again."""
    with sole_use(folder):
        _profile_run(folder, listener, parts, retry_failed, limit_seconds)


def _profile_run(
    folder: Path, listener: Listener, parts: Collection[Part], retry_failed: bool, limit_seconds: float | None
) -> None:
    contents = read_folder(folder)
    done = {
        (record.case.key, _PART_OF[type(record)])
        for record in contents.profiles
        if not (retry_failed and record.outcome in ("failed", "timeout"))
    }
    left = [
        (case, part) for case in contents.run.cases for part in PARTS if part in parts and (case.key, part) not in done
    ]
    method = contents.run.method
    method = msgspec.structs.replace(method, limit_seconds=limit_seconds or method.limit_seconds)
    run = msgspec.structs.replace(contents.run, method=method)
    listener.profiling(len(left))
    with tempfile.TemporaryDirectory(prefix="rnnbench-inputs-") as place:
        for case, part in left:
            record = _launch(run, case, part, Path(place), folder, listener)
            append(folder, record)
            listener.profiled(record)


def _launch(run: Run, case: Case, part: Part, place: Path, folder: Path, listener: Listener) -> ProfileRecord:
    def on_event(event: Event) -> None:
        listener.stage(case, STAGES[type(event)])

    listener.stage(case, "starting")
    subject = find_subject(case, run.workloads, run.systems, run.environments)
    if part == "shapes":
        return launch_retrace(subject, run.method, place, on_event)
    return launch_profile(subject, run.method, place, folder, on_event)
