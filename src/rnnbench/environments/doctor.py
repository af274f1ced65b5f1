"""Looking at everything that can be wrong with the environments and the machine, and saying what to do."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from rnnbench.environments.environment import Environment, fingerprint
from rnnbench.environments.finding import Finding
from rnnbench.environments.host import disk, gpu, tools
from rnnbench.environments.inspect import inspect_python
from rnnbench.environments.interpreters import choose_interpreter
from rnnbench.environments.marker import log_of
from rnnbench.environments.moved_on import how_to_renew, moved_on
from rnnbench.environments.registry import failed_creations, half_environments, list_environments
from rnnbench.environments.spec import no_wheels, parse_spec
from rnnbench.environments.used import refreshed
from rnnbench.errors import UserError
from rnnbench.files import disk_usage
from rnnbench.manifests import manifests
from rnnbench.report import units

__all__ = ["Finding", "diagnose"]


#: Why an environment's framework does not start; empty when it does.
Start = Callable[[Environment], str]


def diagnose(start: Start | None = None) -> list[Finding]:
    """All findings, in the order a user would ask. With `start`, each environment is tried, too."""
    return [
        *_interpreters(), *_older(), *_environments(start), *_halves(), *_failed(), *tools(), *disk(), gpu()
    ]  # fmt: skip


def _interpreters() -> list[Finding]:
    """For each framework, whether its environment could be created here."""
    findings = []
    for name, manifest in manifests().items():
        spec = parse_spec(name)
        findings.append(_creatable(manifest.title, spec.python, spec.architectures))
    # One framework of many may be out of reach; all of them is no way to work.
    if findings and all(each.level == "warning" for each in findings):
        findings = [msgspec.structs.replace(each, level="problem") for each in findings]
    return findings


def _older() -> Iterator[Finding]:
    """The same for versions that want another interpreter than the framework's own version."""
    for manifest in manifests().values():
        own = manifest.requirements_for(manifest.version)
        for entry in manifest.requirements:
            if own is not None and entry.python != own.python:
                title = f"{manifest.title} {entry.versions}".strip()
                yield _creatable(title, entry.python, entry.architectures)


def _creatable(title: str, python: str, architectures: Sequence[str]) -> Finding:
    if reason := no_wheels(architectures):
        return Finding("ok", f"{title} is left out: {reason}")
    try:
        found = choose_interpreter(python)
    except UserError as error:
        return Finding("warning", f"{title}: {error.what}", error.hint)
    return Finding("ok", f"{title} can be created with Python {found.version}, {found.path}")


def _environments(start: Start | None) -> Iterator[Finding]:
    try:
        known = list_environments()
    except UserError as error:
        yield Finding("problem", error.what, error.hint)
        return
    for environment in known:
        finding = _used(environment) if environment.used else _created(environment)
        reason = start(environment) if start and finding.level != "problem" else ""
        if reason:
            hint = f"`rnnbench env remove {environment.id}`, then create it again; or install what it lacks"
            finding = Finding("problem", f"{environment.id} does not start: {reason}", hint)
        yield finding
    folders = [Path(environment.folder) for environment in known if not environment.used]
    if folders:
        size = units.size(sum(disk_usage(folder) for folder in folders))
        yield Finding("ok", f"{len(folders)} created environment{'s' * (len(folders) > 1)} take {size} together")


def _created(environment: Environment) -> Finding:
    again = f"`rnnbench env remove {environment.id}`, then create it again"
    try:
        inspection = inspect_python(Path(environment.python))
    except UserError as error:
        return Finding("problem", f"{environment.id}: {error.what}", again)
    if fingerprint(inspection) != environment.fingerprint:
        changed = _changes(environment.distributions, inspection.distributions)
        return Finding("problem", f"{environment.id} has changed since it was created: {changed}", again)
    if changes := moved_on(environment):
        what = f"{environment.id} was created from another manifest than today's: {changes}"
        return Finding("warning", what, how_to_renew(environment))
    size = units.size(disk_usage(Path(environment.folder)))
    return Finding("ok", f"{environment.id}: Python {inspection.python_version}, {size}, {environment.folder}")


def _used(environment: Environment) -> Finding:
    try:
        now = refreshed(environment)
    except UserError as error:
        return Finding("problem", f"{environment.id}: {error.what}", error.hint)
    if now.fingerprint != environment.fingerprint:
        changed = _changes(environment.distributions, now.distributions)
        hint = f"`rnnbench env use {environment.framework} {environment.python}` takes note of it"
        return Finding("warning", f"{environment.id} has changed since it was given: {changed}", hint)
    return Finding("ok", f"{environment.id}: Python {now.python_version}, {now.python}")


def _changes(before: dict[str, str], now: dict[str, str]) -> str:
    names = sorted(name for name in before | now if before.get(name) != now.get(name))
    changes = [f"{name} {before.get(name, 'absent')} → {now.get(name, 'absent')}" for name in names]
    return ", ".join(changes[:5] + ["…"] * (len(changes) > 5)) or "the interpreter"


def _halves() -> Iterator[Finding]:
    for folder in half_environments():
        hint = f"the next creation replaces it; `rnnbench env remove {folder.name}` frees its space"
        size = units.size(disk_usage(folder))
        yield Finding("warning", f"{folder.name} is a half environment ({size})", hint)


def _failed() -> Iterator[Finding]:
    for id in failed_creations():
        hint = f"{log_of(id)} says why; `rnnbench env create` tries it again"
        yield Finding("warning", f"{id} is not there: its last creation failed or was interrupted", hint)
