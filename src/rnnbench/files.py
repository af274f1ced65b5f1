"""Files and folders: where rnnbench keeps things, writing without half-written results, and locks."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    # The XDG specification says a relative path there is to be ignored.
    base = Path(value) if value and os.path.isabs(value) else Path.home() / default
    return base / "rnnbench"


def cache_folder() -> Path:
    """Environments and verification results: can be deleted at any time."""
    return _xdg("XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """What the user told us and could not be found out again: interpreters given by `env use`."""
    return _xdg("XDG_CONFIG_HOME", ".config")


def worker_package() -> Path:
    """The folder of `rnnbench_worker`, found without importing it: the driver never runs worker code."""
    import importlib.util

    spec = importlib.util.find_spec("rnnbench_worker")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the package rnnbench_worker is not installed beside rnnbench")
    return Path(next(iter(spec.submodule_search_locations)))


def write_atomically(path: Path, content: bytes) -> None:
    """The file is there with all its content, or as it was before; also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(handle, 0o666 & ~_umask())  # a temporary file is its maker's alone; what it becomes is not
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def file_name(text: str) -> str:
    """The text as a name that every file system takes; still to be read, but not to be read back."""
    told_apart = text.replace("/", ".").replace("|", "_")
    return "".join(letter if letter.isalnum() or letter in "._-=," else "-" for letter in told_apart)


def remove_folder(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()  # somebody moved the environment to another disk; only the link is ours
    elif folder.exists():
        shutil.rmtree(folder)


def disk_usage(folder: Path) -> int:
    """Bytes a folder takes on the disk."""
    total = 0
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(FileNotFoundError):  # it may be in use, and byte code comes and goes
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
    return total


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
