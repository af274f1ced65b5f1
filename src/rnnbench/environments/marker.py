"""Where created environments lie, and the marker that tells a complete one from a half one."""

import os
from pathlib import Path

import msgspec

from rnnbench.environments.environment import Environment
from rnnbench.files import write_atomically
from rnnbench.paths import cache_folder

MARKER = "environment.json"


def environments_folder() -> Path:
    return cache_folder() / "environments"


def folder_of(id: str) -> Path:
    return environments_folder() / id


def log_of(id: str) -> Path:
    """What venv and pip printed while it was created."""
    return environments_folder() / f"{id}.log"


def lock_of(id: str) -> Path:
    return environments_folder() / f"{id}.lock"


def write_marker(environment: Environment) -> None:
    """The very last step of a creation."""
    content = msgspec.json.format(msgspec.json.encode(environment), indent=2)
    write_atomically(Path(environment.folder) / MARKER, content + b"\n")


def read_marker(folder: Path) -> Environment | None:
    """The environment in this folder, or None when its creation never came to its end."""
    try:
        environment = msgspec.json.decode((folder / MARKER).read_bytes(), type=Environment)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    # A venv holds its own path in its scripts: one that was moved or copied does not count.
    return environment if environment.folder == str(folder) else None


def starts(environment: Environment) -> bool:
    """Whether its interpreter is still there; a venv's is a link to one that may be gone."""
    return os.access(environment.python, os.X_OK)
