"""The driver of a spread run: it submits what is missing, watches, and collects. It may leave or be killed at any time.

What is going on is asked from the queue and from the folders, each time anew. So `resume` is all there is: a new run
is one of which everything is missing.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from rnnbench.domain.result import Launch
from rnnbench.domain.system import DEVICES
from rnnbench.errors import UserError
from rnnbench.files import locked
from rnnbench.last_run import remember_run
from rnnbench.launch.listener import Listener
from rnnbench.method import make_method
from rnnbench.plan import count_groups, require_device, select_systems
from rnnbench.spread import slurm
from rnnbench.spread.collect import collect
from rnnbench.spread.folder import (
    PLAN,
    Request,
    Resuming,
    Spread,
    complete_on,
    create_spread,
    read_spread,
    reopen,
    visit_folder,
    write_spread,
)
from rnnbench.spread.state import PartProgress, PartState, SpreadState, find_state
from rnnbench.store import read_folder

_SHORTEST_S, _LONGEST_S = 0.5, 15.0  # between two looks at the queue: a cluster's controller serves others too
#: A part that is neither queued nor complete has ended. A network's file system may show its completion later.
_SETTLED_S = 5.0

Watched = Callable[[SpreadState], None]  # called after each look


def begin_spread(request: Request, options: Sequence[str], folder: Path) -> None:
    """Make the folder of a new run. Nothing is submitted yet.

    Bad input is refused here, as far as this machine can tell: it has other processors than the nodes, and no GPU.
    """
    slurm.require_slurm()
    require_device(request.selection.device)
    # Which device `auto` is, and so which systems are the headline ones, is known on a node only.
    device = next((one for one in DEVICES if one == request.selection.device), None)
    select_systems(request.selection.systems, device if request.selection.headline else None)
    make_method(**{**request.method, "threads": 0})
    spread = Spread(
        name=f"rnnbench-{secrets.token_hex(6)}",
        request=request,
        groups=count_groups(request.selection),
        options=tuple(options),
    )
    create_spread(folder, spread)
    remember_run(folder)


def resume_spread(
    folder: Path,
    listener: Listener,
    watched: Watched = lambda state: None,
    *,
    options: Sequence[str] = (),
    resuming: Resuming | None = None,
    detach: bool = False,
) -> SpreadState:
    """Submit all parts that are neither complete nor in the queue, then watch until the queue is empty.

    With `options`, jobs that are submitted from now on have these instead of the earlier ones.
    """
    slurm.require_slurm()
    with _sole_driver(folder):
        spread = read_spread(folder)
        resuming = resuming or Resuming()
        spread = msgspec.structs.replace(spread, options=tuple(options) or spread.options, resuming=resuming)
        write_spread(folder, spread)
        if resuming.retry_failed:
            _reopen_failed(folder, spread)
        jobs = _ask_queue(spread)
        _submit_missing(folder, spread, jobs, listener)
        state = find_state(folder, spread, _ask_queue(spread))
        if not detach:
            state = _watch(folder, spread, listener, watched)
        collect(folder, listener)
    return state


def cancel_spread(folder: Path, listener: Listener) -> int:
    """Cancel the jobs of a run; what is complete is collected. Returns how many there were."""
    slurm.require_slurm()
    jobs = _ask_queue(read_spread(folder))
    slurm.cancel(jobs)
    collect(folder, listener)
    return len(jobs)


def _submit_missing(folder: Path, spread: Spread, jobs: Sequence[slurm.Job], listener: Listener) -> None:
    queued = {job.part: job.id for job in jobs}
    missing = [part for part in spread.parts if part not in queued and complete_on(folder, part) is None]
    plan_jobs: list[str] = [queued[PLAN]] if PLAN in queued else []
    if PLAN in missing:
        plan_jobs = slurm.submit(folder, spread, [PLAN])
        missing.remove(PLAN)
    if missing:
        slurm.submit(folder, spread, missing, after=plan_jobs)
        listener.note(f"submitted {len(missing)} of {spread.groups} parts")


def _watch(folder: Path, spread: Spread, listener: Listener, watched: Watched) -> SpreadState:
    """Look again and again, until no part of the run is in the queue."""
    absent_since: dict[int, float] = {}
    before: list[tuple[PartProgress, str]] = []
    pause, silent = _SHORTEST_S, False
    while True:
        try:
            jobs = slurm.find_jobs(spread)
        except slurm.NoAnswer as error:
            if not silent:
                listener.note(f"warning: the queue does not answer, the jobs go on: {error}")
            silent = True
            time.sleep(_LONGEST_S)
            continue
        silent = False
        state = find_state(folder, spread, jobs)  # after the queue: what ended in between is complete
        now = time.monotonic()
        ended = {part.number for part in state.parts if part.is_ended}
        absent_since = {part: absent_since.get(part, now) for part in ended}
        settled = all(now - since >= _SETTLED_S for since in absent_since.values())
        watched(state)
        if not state.is_going_on and settled:
            return state
        seen = [(part.state, part.node) for part in state.parts]
        pause = _SHORTEST_S if seen != before else min(_LONGEST_S, 1.2 * pause)
        before = seen
        time.sleep(pause)


def _reopen_failed(folder: Path, spread: Spread) -> None:
    for part in spread.parts:
        node = complete_on(folder, part)
        if part == PLAN or node is None or not visit_folder(folder, part, node).is_dir():
            continue
        records = read_folder(visit_folder(folder, part, node)).records
        if any(isinstance(record, Launch) and record.outcome != "ok" for record in records):
            reopen(folder, part)


def _ask_queue(spread: Spread) -> list[slurm.Job]:
    try:
        return slurm.find_jobs(spread)
    except slurm.NoAnswer as error:
        raise UserError(f"the queue does not answer: {error}", "try again: what runs goes on meanwhile") from error


@contextmanager
def _sole_driver(folder: Path) -> Iterator[None]:
    """Two drivers would both submit what is missing."""
    read_spread(folder)  # an error, if it is none
    try:
        with locked(folder / "driver.lock"):
            yield
    except BlockingIOError:
        raise UserError(f"another rnnbench watches {folder}", "wait for that one, or stop it: the jobs go on") from None


def describe_ended(folder: Path, state: SpreadState, shown: int = 5) -> list[str]:
    """For each part whose job ended before its work was done: what its job printed last.

    Without a plan, Slurm ends the jobs that wait for it: then only the plan is worth a line.
    """
    lines: list[str] = []
    ended = [part for part in state.parts if part.is_ended and (part.number == PLAN or not state.parts[PLAN].is_ended)]
    for part in ended[:shown]:
        lines.append(f"{part.name}: its job has ended, its work has not{_last_words(folder, part)}")
    if len(ended) > shown:
        lines.append(f"and {len(ended) - shown} more")
    return lines


def _last_words(folder: Path, part: PartState) -> str:
    path = slurm.output_of(folder, part.number)
    try:
        printed = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return "; it printed nothing"
    return f"; in {path}:" + "".join(f"\n    {line}" for line in printed[-4:])
