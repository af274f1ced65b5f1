"""Where created environments lie, and the marker that tells a complete one from a half one."""

import os
from pathlib import Path

import msgspec

from rnnbench.domain.run import Environment, current_names
from rnnbench.environments.spec import EnvironmentSpec, parse_spec
from rnnbench.errors import UserError
from rnnbench.files import cache_folder, write_atomically

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
        environment = msgspec.json.decode(current_names((folder / MARKER).read_bytes()), type=Environment)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    # A venv holds its own path in its scripts: one that was moved or copied does not count.
    return environment if environment.folder == str(folder) else None


def starts(environment: Environment) -> bool:
    """Whether its interpreter is still there; a venv's is a link to one that may be gone."""
    return os.access(environment.python, os.X_OK)


SPEC = "spec.json"  # in an environment's folder: what it was created from
_SHOWN = 3


def outdated(environment: Environment, spec: EnvironmentSpec | None = None) -> str:
    """What has changed since it was created, such as `numpy==1.16.5 → numpy==1.16.6`; empty when nothing has."""
    try:
        made = msgspec.json.decode((Path(environment.folder) / SPEC).read_bytes(), type=EnvironmentSpec)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return "what it was created from is not known"
    try:
        today = spec or parse_spec(f"{made.framework}=={made.version}", made.variant)
    except UserError as error:
        return error.what
    changes = [
        change
        for before, now in (
            ((f"Python {made.python}",), (f"Python {today.python}",)),
            (made.requirements, today.requirements),
            (made.constraints, today.constraints),
            (made.tooling, today.tooling),
        )
        for change in _changes(before, now)
    ]
    return ", ".join(changes[:_SHOWN] + [f"{len(changes) - _SHOWN} more"] * (len(changes) > _SHOWN))


def how_to_renew(environment: Environment) -> str:
    device = " --device cuda" if environment.id.endswith("-cuda") else ""
    return f"`rnnbench env create --fresh {environment.framework}=={environment.version}{device}` makes it anew"


def _changes(before: tuple[str, ...], now: tuple[str, ...]) -> list[str]:
    """Pins of one distribution are paired; what has no partner came or went. Letters' case means nothing to pip."""
    both = {line.casefold() for line in before} & {line.casefold() for line in now}
    old = {_name(line): line for line in before if line.casefold() not in both}
    new = {_name(line): line for line in now if line.casefold() not in both}
    return [f"{old.get(name, 'nothing')} → {new.get(name, 'nothing')}" for name in dict.fromkeys((*old, *new))]


def _name(line: str) -> str:
    """`numpy` of `numpy>=1.26,<3`."""
    for index, character in enumerate(line):
        if character in "=<>!~ [":
            return line[:index].casefold()
    return line.casefold()
