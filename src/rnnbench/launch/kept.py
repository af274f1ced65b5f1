"""Files that a framework makes once for a machine, kept from one worker to the next.

A worker's temporary folder is new, so that nothing that was compiled before hides the cost of compiling this program.
But Inductor's precompiled header is the same for all programs, and so is what it compiles to try out the processor's
instructions: a user's machine has them, and making them anew takes longer than compiling a step.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from rnnbench.files import cache_folder, read_regular, write_atomically

#: Among a framework's variables: which files, as globs within the worker's temporary folder with spaces between them.
#: `GLOB~WORD`: only files with this word in them.
VARIABLE = "RNNBENCH_KEPT"


def lend(variables: Mapping[str, str], scratch: Path) -> None:
    """Link what earlier workers left to where they had made it."""
    for path in {path for pattern, _ in _kinds(variables) for path in _folder().glob(pattern)}:
        link = scratch / path.relative_to(_folder())
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)


def keep(variables: Mapping[str, str], scratch: Path) -> None:
    """Copy what is new. Only of a worker that ended well: what a killed compiler left would break all later ones."""
    for pattern, word in _kinds(variables):
        for path in scratch.glob(pattern):
            target = _folder() / path.relative_to(scratch)
            if not path.is_symlink() and not target.exists():
                with contextlib.suppress(OSError):  # a full disk only costs time
                    content = read_regular(path)
                    if word in content:
                        write_atomically(target, content)


def _kinds(variables: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """A glob, and the word that its files must have in them."""
    for one in variables.get(VARIABLE, "").split():
        pattern, _, word = one.partition("~")
        yield pattern, word.encode()


def _folder() -> Path:
    return cache_folder() / "kept"
