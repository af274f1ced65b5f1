"""How far a spread run is: each part by the queue and the folders, and all launches together."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from rnnbench.domain.run import Run
from rnnbench.spread.folder import PLAN, Spread, complete_on, groups_of, part_name, visit_folder
from rnnbench.spread.slurm import Job
from rnnbench.store import RECORDS_FILE, read_run

PartProgress = Literal["complete", "running", "waiting", "ended"]


class PartState(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    name: str
    state: PartProgress  # ended: neither complete nor in the queue. It was cancelled, failed, or never submitted
    node: str = ""  # that has it, or whose visit counts
    reason: str = ""  # why it waits
    launches: int = 0  # that are stored
    planned_launches: int = 0

    @property
    def is_ended(self) -> bool:
        return self.state == "ended"


class SpreadState(msgspec.Struct, frozen=True, kw_only=True):
    parts: tuple[PartState, ...]

    def count(self, state: PartProgress) -> int:
        return sum(part.state == state for part in self.parts)

    @property
    def is_going_on(self) -> bool:
        return any(part.state in ("running", "waiting") for part in self.parts)

    @property
    def is_complete(self) -> bool:
        return all(part.state == "complete" for part in self.parts)

    @property
    def launches(self) -> int:
        return sum(part.launches for part in self.parts)

    @property
    def planned_launches(self) -> int:
        return sum(part.planned_launches for part in self.parts)


def find_state(folder: Path, spread: Spread, jobs: Sequence[Job]) -> SpreadState:
    """The queue must have been asked before: a part that ends in between is then found complete."""
    run = _planned_run(folder)
    groups = groups_of(run) if run else []
    sizes = Counter(case.group for case in run.cases) if run else {}
    launches = {number: sizes[group] * run.method.launches for number, group in enumerate(groups, 1)} if run else {}
    queued = {job.part: job for job in jobs}
    return SpreadState(
        parts=tuple(
            _part(folder, number, part_name(groups, number), queued.get(number), launches.get(number, 0))
            for number in spread.parts
        )
    )


def _part(folder: Path, number: int, name: str, job: Job | None, planned: int) -> PartState:
    node = complete_on(folder, number)
    if node is not None:
        return PartState(
            number=number, name=name, state="complete", node=node, launches=planned, planned_launches=planned
        )
    if job is None:
        return PartState(number=number, name=name, state="ended", planned_launches=planned)
    if not job.node:
        return PartState(number=number, name=name, state="waiting", reason=job.reason, planned_launches=planned)
    stored = min(planned, _stored_launches(visit_folder(folder, number, job.node)))
    return PartState(
        number=number, name=name, state="running", node=job.node, launches=stored, planned_launches=planned
    )


def _planned_run(folder: Path) -> Run | None:
    node = complete_on(folder, PLAN)
    return read_run(visit_folder(folder, PLAN, node)) if node else None


def _stored_launches(visit: Path) -> int:
    """Counted without decoding: the driver asks every few seconds. A quote within a text would be escaped."""
    try:
        return (visit / RECORDS_FILE).read_bytes().count(b'{"kind":"launch",')
    except OSError:
        return 0
