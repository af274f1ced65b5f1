"""A run spread over a cluster, as `rnnbench run --on slurm` and `--resume` show it. Jobs call `rnnbench part`."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from rnnbench import units
from rnnbench.cli.options import say
from rnnbench.cli.progress import Progress
from rnnbench.cli.show import print_run
from rnnbench.errors import UserError
from rnnbench.launch.listener import Listener
from rnnbench.spread.driver import begin_spread, cancel_spread, describe_ended, resume_spread
from rnnbench.spread.folder import PLAN, Request, Resuming, is_spread
from rnnbench.spread.state import PartState, SpreadState
from rnnbench.store import read_folder


def require_options(options: Sequence[str]) -> None:
    if options and not options[0].startswith("-"):
        raise UserError(
            f"'{options[0]}' is not an option of sbatch", "its options come after `--`: -- --partition=long"
        )


def begin(request: Request, options: Sequence[str], folder: Path, *, detach: bool, as_json: bool) -> None:
    """A new run."""
    require_options(options)
    begin_spread(request, options, folder)
    resume(folder, detach=detach, as_json=as_json)


def resume(
    folder: Path,
    *,
    options: Sequence[str] = (),
    resuming: Resuming | None = None,
    detach: bool = False,
    as_json: bool = False,
) -> None:
    """Submit what is missing, watch until the queue is empty, and print what is complete."""
    require_options(options)
    with _leaving(folder), SpreadProgress() as progress:
        state = resume_spread(folder, progress, progress.watched, options=options, resuming=resuming, detach=detach)
    if detach:
        say(_counts(state), err=True)
        say(f"the jobs go on; collect with: rnnbench run --resume {folder}", err=True)
        return
    if state.parts[PLAN].state == "complete":
        print_run(read_folder(folder), as_json)
    if state.is_complete:
        say(f"\nsaved in {folder}; print it again with: rnnbench show {folder}", err=as_json)
        return
    say(f"\n{_counts(state)}", err=True)
    for line in describe_ended(folder, state):
        say(f"  {line}", err=True)
    say(f"submit what is missing again with: rnnbench run --resume {folder}", err=True)
    raise typer.Exit(1)


def cancel(folder: Path) -> None:
    cancelled = cancel_spread(folder, Listener())
    say(f"cancelled {cancelled} jobs; what is complete is in {folder}. Go on with: rnnbench run --resume {folder}")


def _counts(state: SpreadState) -> str:
    kinds = ((state.count(kind), kind) for kind in ("complete", "running", "waiting", "ended"))
    counts = ", ".join(f"{count} {'incomplete' if kind == 'ended' else kind}" for count, kind in kinds if count)
    return f"{len(state.parts)} parts: {counts}"


@contextmanager
def _leaving(folder: Path) -> Iterator[None]:
    """Ctrl-C ends the driver. Its jobs go on, unless the user wants them cancelled."""
    try:
        yield
    except KeyboardInterrupt:
        if not is_spread(folder):
            raise
        say("", err=True)
        asked = sys.stdin.isatty() and sys.stderr.isatty()
        if asked and typer.confirm("Cancel the jobs of this run?", default=False, err=True):
            cancel(folder)
        else:
            say(f"the jobs go on; collect with: rnnbench run --resume {folder}", err=True)
            say(f"or cancel them with:         rnnbench run --resume {folder} --cancel", err=True)
        raise typer.Exit(130) from None


class SpreadProgress(Progress):
    """A line when a part begins or ends on a node, and a bar over all parts with an estimate from their launches."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[int, PartState] = {}
        self._state: SpreadState | None = None
        self._launches_before = 0

    def watched(self, state: SpreadState) -> None:
        if self._state is None:
            self._launches_before = state.launches
            self._begin_step(len(state.parts), "")
            self._done = state.count("complete")
            self._seen = {part.number: part for part in state.parts if part.state == "complete"}
        self._state = state
        for part in state.parts:
            before = self._seen.get(part.number)
            if before is None or (before.state, before.node) != (part.state, part.node):
                self._tell(part, before)
            self._seen[part.number] = part
        self._bar.update(self._task, completed=self._done)
        self._show_current(_counts(state))

    def _tell(self, part: PartState, before: PartState | None) -> None:
        if before is not None and before.state == "running" and part.state in ("waiting", "running"):
            self.note(f"warning: {part.name}: {before.node} is lost, or was taken away; it begins again elsewhere")
        if part.state == "complete":
            self._print_result("ok", f"{part.name}: complete on {part.node}")
        elif part.state == "running":
            self.note(f"{part.name}: begins on {part.node}")

    def _time_left(self) -> str:
        if self._state is None:
            return ""
        done, left = self._state.launches - self._launches_before, self._state.planned_launches - self._state.launches
        if done < 3 or left <= 0:
            return ""
        return f"  ({units.duration((time.monotonic() - self._start) / done * left)} left)"
