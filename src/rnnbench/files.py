"""The few things done to files that must not go wrong half-way."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path


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
