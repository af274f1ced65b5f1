"""Temporary folders, and the removal of those that a killed process left behind.

A folder that is in use is locked by the process that made it. The lock ends with the process, however it ends, so
that what can be locked is left over.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "rnnbench-held-"  # folders of versions that locked nothing have another prefix, and are left alone
_YOUNGEST_S = 60.0  # one that was made just now may not be locked yet


@contextmanager
def scratch_folder(what: str) -> Iterator[str]:
    """A new temporary folder, removed at the end. `what` is part of its name."""
    folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{what}-")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without locks: then nothing there is ever swept
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # what a child still writes there must not end a run
        os.close(descriptor)


def sweep() -> list[Path]:
    """Remove this user's temporary folders that no process uses any more; returns them."""
    removed = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                status = os.fstat(descriptor)
                if status.st_uid != os.getuid() or time.time() - status.st_mtime < _YOUNGEST_S:
                    continue
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: somebody uses it
                shutil.rmtree(folder)
                removed.append(folder)
            finally:
                os.close(descriptor)
    return removed
