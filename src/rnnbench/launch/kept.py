"""Files that a framework makes once for a machine, kept from one worker to the next.

A worker's temporary folder is new, so that nothing that was compiled before hides the cost of compiling this program.
But Inductor's precompiled header is the same for all programs: a user's machine has it, and making it anew takes longer
than compiling a step.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from rnnbench.files import cache_folder, read_regular, write_atomically

#: Among a framework's variables: which files, as a glob within the worker's temporary folder.
VARIABLE = "RNNBENCH_KEPT"


def lend(variables: Mapping[str, str], scratch: Path) -> None:
    """Link what earlier workers left to where they had made it."""
    pattern = variables.get(VARIABLE)
    for path in _folder().glob(pattern) if pattern else ():
        link = scratch / path.relative_to(_folder())
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)


def keep(variables: Mapping[str, str], scratch: Path) -> None:
    """Copy what is new. Only of a worker that ended well: what a killed compiler left would break all later ones."""
    pattern = variables.get(VARIABLE)
    for path in scratch.glob(pattern) if pattern else ():
        target = _folder() / path.relative_to(scratch)
        if not path.is_symlink() and not target.exists():
            with contextlib.suppress(OSError):  # a full disk only costs time
                write_atomically(target, read_regular(path))


def _folder() -> Path:
    return cache_folder() / "kept"
