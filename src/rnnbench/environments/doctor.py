"""What the doctor says."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from rnnbench import units
from rnnbench.domain.run import Environment
from rnnbench.environments.cache import how_to_renew, log_of, outdated
from rnnbench.environments.environment import fingerprint, inspect_python
from rnnbench.environments.external import refreshed
from rnnbench.environments.interpreters import choose_interpreter
from rnnbench.environments.registry import failed_creations, half_environments, list_environments
from rnnbench.environments.spec import no_wheels, parse_spec
from rnnbench.errors import UserError
from rnnbench.files import cache_folder, disk_usage
from rnnbench.manifests import manifests


class Diagnosis(msgspec.Struct, frozen=True):
    """One thing looked at. A problem stops something from working, a warning may."""

    level: Literal["ok", "warning", "problem"]
    what: str
    hint: str = ""


__all__ = ["Diagnosis", "diagnose"]

#: Why an environment's framework does not start; empty when it does.
Start = Callable[[Environment], str]


def diagnose(start: Start | None = None) -> list[Diagnosis]:
    """All findings, in the order a user would ask. With `start`, each environment is tried, too."""
    return [
        *_interpreters(), *_older(), *_environments(start), *_halves(), *_failed(), *tools(), *disk(), gpu()
    ]  # fmt: skip


def _interpreters() -> list[Diagnosis]:
    """For each framework, whether its environment could be created here."""
    findings = []
    for name, manifest in manifests().items():
        spec = parse_spec(name)
        findings.append(_creatable(manifest.title, spec.python, spec.architectures))
    # One framework of many may be out of reach; all of them is no way to work.
    if findings and all(each.level == "warning" for each in findings):
        findings = [msgspec.structs.replace(each, level="problem") for each in findings]
    return findings


def _older() -> Iterator[Diagnosis]:
    """The same for versions that want another interpreter than the framework's own version."""
    for manifest in manifests().values():
        own = manifest.requirements_for(manifest.version)
        for entry in manifest.requirements:
            if own is not None and entry.python != own.python:
                title = f"{manifest.title} {entry.versions}".strip()
                yield _creatable(title, entry.python, entry.architectures)


def _creatable(title: str, python: str, architectures: Sequence[str]) -> Diagnosis:
    if reason := no_wheels(architectures):
        return Diagnosis("ok", f"{title} is left out: {reason}")
    try:
        found = choose_interpreter(python)
    except UserError as error:
        return Diagnosis("warning", f"{title}: {error.what}", error.hint)
    return Diagnosis("ok", f"{title} can be created with Python {found.version}, {found.path}")


def _environments(start: Start | None) -> Iterator[Diagnosis]:
    try:
        known = list_environments()
    except UserError as error:
        yield Diagnosis("problem", error.what, error.hint)
        return
    for environment in known:
        finding = _external(environment) if environment.external else _created(environment)
        reason = start(environment) if start and finding.level != "problem" else ""
        if reason:
            hint = f"`rnnbench env remove {environment.id}`, then create it again; or install what it lacks"
            finding = Diagnosis("problem", f"{environment.id} does not start: {reason}", hint)
        yield finding
    folders = [Path(environment.folder) for environment in known if not environment.external]
    if folders:
        size = units.size(sum(disk_usage(folder) for folder in folders))
        yield Diagnosis("ok", f"{len(folders)} created environment{'s' * (len(folders) > 1)} take {size} together")


def _created(environment: Environment) -> Diagnosis:
    again = f"`rnnbench env remove {environment.id}`, then create it again"
    try:
        inspection = inspect_python(Path(environment.python))
    except UserError as error:
        return Diagnosis("problem", f"{environment.id}: {error.what}", again)
    if fingerprint(inspection) != environment.fingerprint:
        changed = _changes(environment.distributions, inspection.distributions)
        return Diagnosis("problem", f"{environment.id} has changed since it was created: {changed}", again)
    if changes := outdated(environment):
        what = f"{environment.id} was created from another manifest than today's: {changes}"
        return Diagnosis("warning", what, how_to_renew(environment))
    size = units.size(disk_usage(Path(environment.folder)))
    return Diagnosis("ok", f"{environment.id}: Python {inspection.python_version}, {size}, {environment.folder}")


def _external(environment: Environment) -> Diagnosis:
    try:
        now = refreshed(environment)
    except UserError as error:
        return Diagnosis("problem", f"{environment.id}: {error.what}", error.hint)
    if now.fingerprint != environment.fingerprint:
        changed = _changes(environment.distributions, now.distributions)
        hint = f"`rnnbench env use {environment.framework} {environment.python}` takes note of it"
        return Diagnosis("warning", f"{environment.id} has changed since it was given: {changed}", hint)
    return Diagnosis("ok", f"{environment.id}: Python {now.python_version}, {now.python}")


def _changes(before: dict[str, str], now: dict[str, str]) -> str:
    names = sorted(name for name in before | now if before.get(name) != now.get(name))
    changes = [f"{name} {before.get(name, 'absent')} → {now.get(name, 'absent')}" for name in names]
    return ", ".join(changes[:5] + ["…"] * (len(changes) > 5)) or "the interpreter"


def _halves() -> Iterator[Diagnosis]:
    for folder in half_environments():
        hint = f"the next creation replaces it; `rnnbench env remove {folder.name}` frees its space"
        size = units.size(disk_usage(folder))
        yield Diagnosis("warning", f"{folder.name} is a half environment ({size})", hint)


def _failed() -> Iterator[Diagnosis]:
    for id in failed_creations():
        hint = f"{log_of(id)} says why; `rnnbench env create` tries it again"
        yield Diagnosis("warning", f"{id} is not there: its last creation failed or was interrupted", hint)


_ROOM = 6e9  # bytes: the largest environments take 5 GB


def tools() -> Iterator[Diagnosis]:
    """Programs that some systems start, compilers above all."""
    wanted: dict[str, list[str]] = {}
    for system in (system for manifest in manifests().values() for system in manifest.system):
        for tool in system.tools:
            wanted.setdefault(tool, []).append(system.name)
    for tool, systems in sorted(wanted.items()):
        found = next(filter(None, map(shutil.which, tool.split("|"))), None)
        names = tool.replace("|", " or ")
        if found:
            yield Diagnosis("ok", f"{names}: {found}")
        else:
            others = f" and {len(systems) - 1} more" if len(systems) > 1 else ""
            yield Diagnosis(
                "warning", f"{names} is not on PATH", f"{systems[0]}{others} cannot run without; install one"
            )


def disk() -> Iterator[Diagnosis]:
    """Whether an environment could be written, and whether it would fit."""
    folder = cache_folder()
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        yield Diagnosis("problem", f"cannot write to {folder}", "set XDG_CACHE_HOME to a folder that you may write")
    free = shutil.disk_usage(existing).free
    hint = "environments take 0.4 to 5 GB each; XDG_CACHE_HOME can name another disk"
    yield Diagnosis(
        "ok" if free >= _ROOM else "warning",
        f"{units.size(free)} free in {folder}",
        "" if free >= _ROOM else hint,
    )


def gpu() -> Diagnosis:
    """Whether the driver sees a device. None is fine: everything but `--device cuda` works without."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return Diagnosis("ok", "no nvidia-smi, so no CUDA device is expected here")
    try:
        answer = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=20)
        names = [line.split(" (UUID")[0] for line in answer.stdout.splitlines() if line.startswith("GPU")]
    except (OSError, subprocess.TimeoutExpired):
        names = []
    if names:
        return Diagnosis("ok", "; ".join(names))
    return Diagnosis("warning", "nvidia-smi finds no GPU", f"run {program} to see what the driver says")
