"""Whether the manifest asks for something else than what an environment was made from, and for what."""

from pathlib import Path

import msgspec

from rnnbench.environments.environment import Environment
from rnnbench.environments.spec import EnvironmentSpec, parse_spec
from rnnbench.errors import UserError

SPEC = "spec.json"  # in an environment's folder: what it was created from
_SHOWN = 3


def moved_on(environment: Environment, spec: EnvironmentSpec | None = None) -> str:
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
