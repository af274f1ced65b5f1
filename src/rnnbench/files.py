"""Files and folders: where rnnbench keeps them, atomic writes, deletion, and locks."""

import errno
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from rnnbench.errors import UserError


def cache_folder() -> Path:
    """For environments and verification results: it can be deleted at any time."""
    return _xdg_folder("XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """For the user's choices: the external interpreters named by `env use`."""
    return _xdg_folder("XDG_CONFIG_HOME", ".config")


def _xdg_folder(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    # By the XDG specification, a relative path in the variable is ignored.
    base = Path(value) if value and os.path.isabs(value) else Path.home() / default
    return base / "rnnbench"


def worker_package() -> Path:
    """The folder of `rnnbench_worker`, found without importing it: the driver never runs worker code."""
    import importlib.util

    spec = importlib.util.find_spec("rnnbench_worker")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the package rnnbench_worker is not installed together with rnnbench")
    return Path(next(iter(spec.submodule_search_locations)))


#: The library that some of the rows of PyTorch run with; it is installed beside the worker.
FUSE = "rnnfuse"


def fuse_package() -> Path:
    return worker_package().resolve().parent / FUSE


def cells_package() -> Path:
    """The cells, which the driver and every worker import."""
    return worker_package().resolve().parent / "rnnbench_cells"


#: What decoding JSON raises when it is damaged. A thousand brackets make a RecursionError.
DAMAGED_JSON = (msgspec.MsgspecError, ValueError, RecursionError)


def read_regular(path: Path) -> bytes:
    """The content of a file; an OSError for anything else. A FIFO in its place would be waited for forever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read()


def write_atomically(path: Path, content: bytes) -> None:
    """Write the file completely or leave it unchanged, even if the process crashes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(handle, 0o666 & ~_umask())  # a temporary file is private; the final one has the usual permissions
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def require_writable(folder: Path) -> None:
    """Raise a UserError unless files can be written to this folder, which need not exist yet. Nothing stays of the try.

    It is tried, not asked: in /proc not even root may create what the permissions allow.
    """
    made: list[Path] = []
    try:
        for path in (*reversed(folder.absolute().parents), folder.absolute()):
            if not os.path.lexists(path):
                path.mkdir()
                made.append(path)
        os.rmdir(tempfile.mkdtemp(prefix=".rnnbench-", dir=folder))
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}", "choose another folder") from error
    finally:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_LONGEST_NAME = 200  # bytes; others put something before or after it


def file_name(text: str) -> str:
    """The text as a file name for every file system: readable, but it cannot be converted back."""
    separated = text.replace("/", ".").replace("|", "_")
    name = "".join(letter if letter.isalnum() or letter in "._-=," else "-" for letter in separated)
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    # Cut in the middle, with a hash of the whole: a file system takes 255 bytes, and the end says what kind it is.
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    head, tail = (name.encode()[part].decode("utf-8", "ignore") for part in (slice(140), slice(-20, None)))
    return f"{head}-{digest}-{tail}"


def remove_folder(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()  # the user moved the environment to another disk: delete only the link
    elif folder.exists():
        shutil.rmtree(folder)


def disk_usage(folder: Path) -> int:
    """The bytes that a folder takes on the disk."""
    total = 0
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(FileNotFoundError):  # the folder may be in use, and byte code files come and go
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
    return total


_POLL_SECONDS = 0.5  # a thread that waits in the kernel could not be interrupted


@contextmanager
def locked(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[int]:
    """Hold the lock of this file. While another process has it, wait and call `waiting` again and again.

    An exception from `waiting` ends the wait; without `waiting`, BlockingIOError is raised instead. Yields the
    descriptor: a child that inherits it keeps the lock, so that, if the driver is killed, nobody deletes the folder
    while its pip still runs.
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
                time.sleep(_POLL_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)  # the file stays: deleting it would let two processes lock two files


def is_locked(path: Path) -> bool:
    """Whether another process holds the lock now."""
    if not path.exists():
        return False
    try:
        with locked(path):
            return False
    except BlockingIOError:
        return True
    except PermissionError:
        return False  # without write access to the cache this cannot be found out
