"""The findings of `rnnbench env doctor`: what can be created here, the state of the environments, what is missing."""

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
from rnnbench.environments.registry import failed_creations, incomplete_environments, list_environments
from rnnbench.environments.spec import no_wheels, parse_spec
from rnnbench.errors import UserError
from rnnbench.files import cache_folder, disk_usage
from rnnbench.manifests import manifests

#: Why an environment's framework does not start; empty if it does.
Start = Callable[[Environment], str]
_NEEDED_BYTES = 6e9  # free on the disk: the largest environments take 5 GB


class Diagnosis(msgspec.Struct, frozen=True):
    """One finding. A problem prevents something from working, a warning may."""

    level: Literal["ok", "warning", "problem"]
    what: str
    hint: str = ""


def diagnose(start: Start | None = None) -> list[Diagnosis]:
    """All findings, in the order of a user's questions. With `start`, every environment is also started."""
    return [
        *_check_default_versions(),
        *_check_other_versions(),
        *_check_environments(start),
        *_check_incomplete(),
        *_check_failed_creations(),
        *_check_tools(),
        *_check_disk(),
        _check_gpu(),
    ]


def _check_default_versions() -> list[Diagnosis]:
    """For each framework, whether its environment can be created here."""
    findings = []
    for name, manifest in manifests().items():
        spec = parse_spec(name)
        findings.append(_check_creation(manifest.title, spec.python, spec.architectures))
    # That one framework of many cannot be created is a warning; that none can is a problem.
    if findings and all(each.level == "warning" for each in findings):
        findings = [msgspec.structs.replace(each, level="problem") for each in findings]
    return findings


def _check_other_versions() -> Iterator[Diagnosis]:
    """The same for versions that need another interpreter than the framework's default version."""
    for manifest in manifests().values():
        default = manifest.requirements_for(manifest.version)
        for entry in manifest.requirements:
            if default is not None and entry.python != default.python:
                title = f"{manifest.title} {entry.versions}".strip()
                yield _check_creation(title, entry.python, entry.architectures)


def _check_creation(title: str, python: str, architectures: Sequence[str]) -> Diagnosis:
    if reason := no_wheels(architectures):
        return Diagnosis("ok", f"{title} is left out: {reason}")
    try:
        found = choose_interpreter(python)
    except UserError as error:
        return Diagnosis("warning", f"{title}: {error.what}", error.hint)
    return Diagnosis("ok", f"{title} can be created with Python {found.version}, {found.path}")


def _check_environments(start: Start | None) -> Iterator[Diagnosis]:
    try:
        known = list_environments()
    except UserError as error:
        yield Diagnosis("problem", error.what, error.hint)
        return
    for environment in known:
        finding = _check_external(environment) if environment.external else _check_created(environment)
        reason = start(environment) if start and finding.level != "problem" else ""
        if reason:
            hint = f"`rnnbench env remove {environment.id}`, then create it again; or install what is missing"
            finding = Diagnosis("problem", f"{environment.id} does not start: {reason}", hint)
        yield finding
    folders = [Path(environment.folder) for environment in known if not environment.external]
    if folders:
        size = units.size(sum(disk_usage(folder) for folder in folders))
        yield Diagnosis("ok", f"{len(folders)} created environment{'s' * (len(folders) > 1)}: {size} in total")


def _check_created(environment: Environment) -> Diagnosis:
    hint = f"`rnnbench env remove {environment.id}`, then create it again"
    try:
        inspection = inspect_python(Path(environment.python))
    except UserError as error:
        return Diagnosis("problem", f"{environment.id}: {error.what}", hint)
    if fingerprint(inspection) != environment.fingerprint:
        changed = _changed_distributions(environment.distributions, inspection.distributions)
        return Diagnosis("problem", f"{environment.id} has changed since it was created: {changed}", hint)
    if changes := outdated(environment):
        what = f"{environment.id} was created from another manifest: {changes}"
        return Diagnosis("warning", what, how_to_renew(environment))
    size = units.size(disk_usage(Path(environment.folder)))
    return Diagnosis("ok", f"{environment.id}: Python {inspection.python_version}, {size}, {environment.folder}")


def _check_external(environment: Environment) -> Diagnosis:
    try:
        now = refreshed(environment)
    except UserError as error:
        return Diagnosis("problem", f"{environment.id}: {error.what}", error.hint)
    if now.fingerprint != environment.fingerprint:
        changed = _changed_distributions(environment.distributions, now.distributions)
        hint = f"`rnnbench env use {environment.framework} {environment.python}` accepts the change"
        return Diagnosis("warning", f"{environment.id} has changed since `env use`: {changed}", hint)
    return Diagnosis("ok", f"{environment.id}: Python {now.python_version}, {now.python}")


def _changed_distributions(before: dict[str, str], now: dict[str, str]) -> str:
    names = sorted(name for name in before | now if before.get(name) != now.get(name))
    changes = [f"{name} {before.get(name, 'absent')} → {now.get(name, 'absent')}" for name in names]
    return ", ".join(changes[:5] + ["…"] * (len(changes) > 5)) or "the interpreter"


def _check_incomplete() -> Iterator[Diagnosis]:
    for folder in incomplete_environments():
        hint = f"the next creation replaces it; `rnnbench env remove {folder.name}` deletes it"
        yield Diagnosis("warning", f"{folder.name} is incomplete ({units.size(disk_usage(folder))})", hint)


def _check_failed_creations() -> Iterator[Diagnosis]:
    for id in failed_creations():
        hint = f"{log_of(id)} says why; `rnnbench env create` tries again"
        yield Diagnosis("warning", f"{id} does not exist: its last creation failed or was interrupted", hint)


def _check_tools() -> Iterator[Diagnosis]:
    """The programs that some systems start, mostly compilers."""
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
            hint = f"{systems[0]}{others} cannot run without it; install it"
            yield Diagnosis("warning", f"{names} is not on PATH", hint)


def _check_disk() -> Iterator[Diagnosis]:
    """Whether an environment can be written, and whether there is enough space for it."""
    folder = cache_folder()
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        yield Diagnosis("problem", f"cannot write to {folder}", "set XDG_CACHE_HOME to a folder you can write to")
    free = shutil.disk_usage(existing).free
    what = f"{units.size(free)} free in {folder}"
    hint = "an environment takes 0.4 to 5 GB; XDG_CACHE_HOME can name a folder on another disk"
    yield Diagnosis("ok", what) if free >= _NEEDED_BYTES else Diagnosis("warning", what, hint)


def _check_gpu() -> Diagnosis:
    """Whether the driver finds a GPU. Without one, only `--device cuda` does not work."""
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
