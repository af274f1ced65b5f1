"""One process at a time: builds or deletes an environment, goes on with a run."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_LOOK_SECONDS = 0.5  # not a wait in the kernel: a thread could not be called back from there


@contextmanager
def locked(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[int]:
    """Hold the lock of this file; when another has it, say so through `waiting` at every look, and wait.

    What `waiting` raises ends the waiting; without `waiting`, BlockingIOError is raised instead. Yields the
    descriptor: a child that inherits it keeps the lock, so that a driver killed outright leaves no folder
    to be deleted under its pip.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if waiting is None:
                    raise
                waiting()
                time.sleep(_LOOK_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)  # the file stays: deleting it would let two processes lock two files


def is_locked(path: Path) -> bool:
    """Whether somebody is at work there now."""
    if not path.exists():
        return False
    try:
        with locked(path):
            return False
    except BlockingIOError:
        return True
    except PermissionError:
        return False  # a cache that is not ours to write; whoever may write it can tell
