"""Slurm, by its own commands: sbatch, squeue, scancel. Accounting is never asked, since many clusters have none.

Jobs are found in the queue by their name, which the run's folder had before the first was submitted. So none is
forgotten, whenever the driver was killed.
"""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rnnbench.errors import UserError
from rnnbench.spread.folder import Spread

#: Every job has a node for itself, all its memory too (`--exclusive` alone does not give it), and starts again
#: elsewhere when its node is lost. They come after the user's options, so that none of these can be undone.
_ALWAYS = ("--nodes=1", "--ntasks=1", "--exclusive", "--mem=0", "--requeue", "--open-mode=append")
_LARGEST_ARRAY = 1000  # by default Slurm takes no index above
_ANSWER_S = 60.0


class Job(NamedTuple):
    """A job of the run that has not ended."""

    id: str  # of the array: what scancel takes
    part: int
    state: str  # PENDING, RUNNING, COMPLETING, …
    node: str  # "" while it waits
    reason: str  # why it waits


class NoAnswer(Exception):
    """Slurm could not be asked just now. Its jobs go on meanwhile."""


def require_slurm() -> None:
    missing = [name for name in ("sbatch", "squeue", "scancel") if shutil.which(name) is None]
    if missing:
        raise UserError(
            f"Slurm is not here: {', '.join(missing)} not found on PATH",
            "run this on a login node of the cluster, or without --on slurm",
        )


def submit(folder: Path, spread: Spread, parts: Sequence[int], after: Sequence[str] = ()) -> list[str]:
    """Submit these parts; `after`: when these jobs have succeeded. Returns the ids of the arrays."""
    arrays: dict[int, list[int]] = {}
    for part in parts:
        arrays.setdefault(_offset(part), []).append(part - _offset(part))
    jobs: list[str] = []
    for offset, indices in arrays.items():
        output = str(folder.resolve() / "jobs").replace("%", "%%") + f"/{offset}-%a.out"
        waiting = (f"--dependency=afterok:{':'.join(after)}", "--kill-on-invalid-dep=yes") if after else ()
        words = (f"--job-name={spread.name}-{offset}", f"--array={_ranges(indices)}", f"--output={output}", *waiting)
        try:
            answer = _call(["sbatch", "--parsable", *spread.options, *_ALWAYS, *words], _script(folder, offset))
        except NoAnswer as error:
            hint = f"with other options for it: rnnbench run --resume {folder} -- OPTIONS"
            raise UserError(f"sbatch refused the jobs: {error}", hint) from error
        jobs.append(answer.strip().partition(";")[0])
    return jobs


def find_jobs(spread: Spread) -> list[Job]:
    """The run's jobs that have not ended, one for each part."""
    answer = _call(["squeue", "--me", "--noheader", "--array", "--format=%F|%K|%T|%N|%j|%r"])
    jobs: list[Job] = []
    for line in answer.splitlines():
        id, index, state, node, name, reason = (field.strip() for field in line.split("|", 5))
        prefix, _, offset = name.rpartition("-")
        if prefix == spread.name:
            jobs.append(Job(id, int(offset) + int(index), state, node, reason))
    return jobs


def cancel(jobs: Iterable[Job]) -> None:
    ids = sorted({job.id for job in jobs})
    if ids:
        try:
            _call(["scancel", *ids])
        except NoAnswer as error:
            raise UserError(f"scancel failed: {error}", f"cancel them yourself: scancel {' '.join(ids)}") from error


def output_of(folder: Path, part: int) -> Path:
    """What the jobs of a part have printed, one after the other."""
    return folder / "jobs" / f"{_offset(part)}-{part - _offset(part)}.out"


def _offset(part: int) -> int:
    """Part 0 is index 0 of the first array, which the parts 1 to 1000 share."""
    return max(0, part - 1) // _LARGEST_ARRAY * _LARGEST_ARRAY


def _ranges(numbers: Sequence[int]) -> str:
    """`1-3,7`: an array of a thousand must fit in a command line."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{low}-{high}" if low < high else str(low) for low, high in ranges)


def _script(folder: Path, offset: int) -> str:
    """`exec`, so that the signal before a time limit reaches the driver of the part."""
    command = shlex.join([sys.executable, "-m", "rnnbench", "part", str(folder.resolve())])
    return f"#!/bin/sh\nexec {command} $(({offset} + SLURM_ARRAY_TASK_ID))\n"


def _call(words: Sequence[str], given: str = "") -> str:
    """The answer of a command of Slurm."""
    try:
        answer = subprocess.run(words, input=given, capture_output=True, text=True, timeout=_ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoAnswer(str(error)) from error
    if answer.returncode:
        raise NoAnswer(answer.stderr.strip() or f"{words[0]} ended with {answer.returncode}")
    return answer.stdout
