"""The cache of created environments: its folders, the marker of a complete one, and whether one is outdated."""

import os
from pathlib import Path

import msgspec

from rnnbench.domain.bounds import require_name
from rnnbench.domain.consistency import require_usable
from rnnbench.domain.run import Environment, current_names
from rnnbench.environments.spec import EnvironmentSpec, parse_spec
from rnnbench.errors import UserError
from rnnbench.files import DAMAGED_JSON, cache_folder, read_regular, write_atomically

MARKER_FILE = "environment.json"
SPEC_FILE = "spec.json"  # in an environment's folder: what it was created from
_MAX_CHANGES_SHOWN = 3


def environments_folder() -> Path:
    return cache_folder() / "environments"


def folder_of(id: str) -> Path:
    return environments_folder() / _checked(id)


def _checked(id: str) -> str:
    """The id, if it can only name something within the cache: its folder is one that is deleted."""
    try:
        require_name(id, "an environment")
    except ValueError as error:
        raise UserError(str(error), "use a version of this framework with a shorter, plain name") from error
    return id


def log_of(id: str) -> Path:
    """The output of venv and pip while the environment was created."""
    return environments_folder() / f"{_checked(id)}.log"


def lock_of(id: str) -> Path:
    return environments_folder() / f"{_checked(id)}.lock"


def write_marker(environment: Environment) -> None:
    """Mark the environment as complete: the very last step of its creation."""
    content = msgspec.json.format(msgspec.json.encode(environment), indent=2)
    write_atomically(Path(environment.folder) / MARKER_FILE, content + b"\n")


def read_marker(folder: Path) -> Environment | None:
    """The environment in this folder, or None if its creation was not completed."""
    try:
        environment = msgspec.json.decode(current_names(read_regular(folder / MARKER_FILE)), type=Environment)
        require_usable(environment)
    except (OSError, *DAMAGED_JSON):
        return None
    # A venv stores its own path in its scripts, so one that was moved or copied does not work. One that is reached
    # through a link is neither: it is the same folder.
    return environment if _same_folder(environment.folder, folder) else None


def _same_folder(recorded: str, folder: Path) -> bool:
    try:
        return recorded == str(folder) or os.path.samefile(recorded, folder)
    except (OSError, ValueError):
        return False


def interpreter_exists(environment: Environment) -> bool:
    """Whether the interpreter can still be started: in a venv it is a link, whose target may be gone."""
    return os.access(environment.python, os.X_OK)


def outdated(environment: Environment, spec: EnvironmentSpec | None = None) -> str:
    """What has changed since it was created, such as `numpy==1.16.5 → numpy==1.16.6`; empty if nothing has."""
    try:
        old = msgspec.json.decode(read_regular(Path(environment.folder) / SPEC_FILE), type=EnvironmentSpec)
    except (OSError, *DAMAGED_JSON):
        return "the requirements it was created from are unknown"
    try:
        new = spec or parse_spec(f"{old.framework}=={old.version}", old.variant)
    except UserError as error:
        return error.what
    changes = [
        change
        for before, now in (
            ((f"Python {old.python}",), (f"Python {new.python}",)),
            (old.requirements, new.requirements),
            (old.constraints, new.constraints),
            (old.tooling, new.tooling),
        )
        for change in _changed_requirements(before, now)
    ]
    hidden = len(changes) - _MAX_CHANGES_SHOWN
    return ", ".join(changes[:_MAX_CHANGES_SHOWN] + [f"{hidden} more"] * (hidden > 0))


def how_to_renew(environment: Environment) -> str:
    device = " --device cuda" if environment.id.endswith("-cuda") else ""
    return f"`rnnbench env create --fresh {environment.framework}=={environment.version}{device}` creates it again"


def _changed_requirements(before: tuple[str, ...], now: tuple[str, ...]) -> list[str]:
    """Old and new requirement of each distribution that differs. pip ignores upper and lower case."""
    unchanged = {line.casefold() for line in before} & {line.casefold() for line in now}
    old = {_distribution(line): line for line in before if line.casefold() not in unchanged}
    new = {_distribution(line): line for line in now if line.casefold() not in unchanged}
    return [f"{old.get(name, 'nothing')} → {new.get(name, 'nothing')}" for name in dict.fromkeys((*old, *new))]


def _distribution(requirement: str) -> str:
    """`numpy` of `numpy>=1.26,<3`."""
    for index, character in enumerate(requirement):
        if character in "=<>!~ [":
            return requirement[:index].casefold()
    return requirement.casefold()
