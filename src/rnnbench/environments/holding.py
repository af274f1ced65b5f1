"""Environments in use are never removed: whoever uses one holds it, and whoever removes one must have it alone.

The lock is on the marker of the environment, a file that only a complete environment has. It is inside the folder, so
that it is the same one through every link that leads there, and a reader needs no right to write to hold it.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from rnnbench.domain.run import Environment
from rnnbench.environments.cache import MARKER_FILE
from rnnbench.errors import UserError

_WAIT = "wait until that one has ended, or stop it"


@contextmanager
def held(environments: Iterable[Environment]) -> Iterator[None]:
    """Nobody can remove these while the block runs. External interpreters belong to others, and are not held."""
    with ExitStack() as stack:
        for folder in sorted({each.folder for each in environments if each.folder and not each.external}):
            try:
                descriptor = os.open(Path(folder) / MARKER_FILE, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            except OSError:
                continue  # it is gone: its interpreter cannot be started, which is reported with the reason
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"the environment in {folder} is being removed or created again", _WAIT) from None
            except OSError:
                continue  # a file system without locks; nothing more can be done there
        yield


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody uses the environment in this folder while the block runs. Raises a UserError while somebody does."""
    with ExitStack() as stack:
        with suppress(FileNotFoundError, NotADirectoryError):  # it was never complete, so nobody can use it
            # For a file system over a network an exclusive lock needs a file that is open for writing.
            descriptor = os.open(folder / MARKER_FILE, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(
                    f"{folder.name} is in use by another rnnbench, so it is neither removed nor created again", _WAIT
                ) from None
        yield


def is_known(environment: Environment, known: Iterable[Environment]) -> bool:
    """Whether this interpreter is one of those known here; one that is reached through a link is the same."""
    return any(_place(environment.python) == _place(other.python) for other in known)


def _place(python: str) -> tuple[str, str]:
    """The interpreter's folder without links, and its name. In a venv the last part is a link that must stay."""
    return os.path.realpath(os.path.dirname(python)), os.path.basename(python)
