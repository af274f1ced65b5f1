"""`last`: the newest run by a name that needs no date, wherever its folder is."""

import os
from contextlib import suppress
from pathlib import Path

from rnnbench.errors import UserError
from rnnbench.files import cache_folder, read_regular, write_atomically
from rnnbench.store import RUN_FILE, SPREAD_FILE

LAST = "last"
RUNS = Path("runs")  # where runs are stored that were given no folder


def remember_run(folder: Path) -> None:
    """Note that this run has begun. A cache that cannot be written is no reason to fail: `runs/` is searched too."""
    with suppress(OSError):
        write_atomically(_note(), os.fsencode(folder.resolve()))


def run_named(path: Path) -> Path:
    """The folder of a run: the newest one for `last`, unless there is a folder of that name, else the path itself."""
    return newest_run() if str(path) == LAST and not path.exists() else path


def newest_run() -> Path:
    """The run that began last: the one that was noted, or the newest in `runs/`."""
    began = {folder: _began(folder) for folder in (*_noted(), *_stored())}
    known = {folder: when for folder, when in began.items() if when is not None}
    if not known:
        raise UserError("there is no last run", "begin one with `rnnbench run`, or name the folder of a run")
    return _shortest(max(known, key=lambda folder: known[folder]))


def short_name(folder: Path) -> str:
    """`last` for the newest run, else its folder: what a user would type."""
    with suppress(UserError, OSError):
        if newest_run().resolve() == folder.resolve():
            return LAST
    return str(folder)


def require_other_name(folder: Path) -> None:
    """A run in a folder called `last` would hide the newest one."""
    if folder.name == LAST:
        raise UserError(f"a run cannot be stored in {folder}: '{LAST}' means the newest run", "choose another folder")


def _note() -> Path:
    return cache_folder() / "last-run"


def _noted() -> list[Path]:
    with suppress(OSError):
        return [Path(os.fsdecode(read_regular(_note())))]
    return []


def _stored() -> list[Path]:
    with suppress(OSError):
        return list(RUNS.iterdir())
    return []


def _began(folder: Path) -> float | None:
    """When its plan was written, which happens once, or a spread run without a plan was asked for; None: no run."""
    for name in (RUN_FILE, SPREAD_FILE):
        with suppress(OSError, ValueError):
            return (folder / name).stat().st_mtime
    return None


def _shortest(folder: Path) -> Path:
    """From here, where it is below the current folder: that is how the user knows it."""
    with suppress(OSError, ValueError):
        return folder.resolve().relative_to(Path.cwd().resolve())
    return folder
