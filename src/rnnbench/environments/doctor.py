"""Looking at everything that can be wrong with the environments and the machine, and saying what to do."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from rnnbench.environments.create import SPEC
from rnnbench.environments.environment import Environment, fingerprint
from rnnbench.environments.finding import Finding
from rnnbench.environments.host import disk, gpu, tools
from rnnbench.environments.inspect import inspect_python
from rnnbench.environments.interpreters import choose_interpreter
from rnnbench.environments.registry import half_environments, list_environments
from rnnbench.environments.spec import EnvironmentSpec, parse_spec
from rnnbench.environments.used import refreshed
from rnnbench.errors import UserError
from rnnbench.files import disk_usage
from rnnbench.manifests import manifests
from rnnbench.report import units

__all__ = ["Finding", "diagnose"]


def diagnose() -> list[Finding]:
    """All findings, in the order a user would ask."""
    return [*_interpreters(), *_environments(), *_halves(), *tools(), *disk(), gpu()]


def _interpreters() -> list[Finding]:
    """For each framework, whether its environment could be created here."""
    findings = []
    for name, manifest in manifests().items():
        try:
            found = choose_interpreter(parse_spec(name).python)
            findings.append(Finding("ok", f"{manifest.title} can be created with Python {found.version}, {found.path}"))
        except UserError as error:
            findings.append(Finding("warning", f"{manifest.title}: {error.what}", error.hint))
    # One framework of many may be out of reach; all of them is no way to work.
    if findings and all(each.level == "warning" for each in findings):
        findings = [msgspec.structs.replace(each, level="problem") for each in findings]
    return findings


def _environments() -> Iterator[Finding]:
    try:
        known = list_environments()
    except UserError as error:
        yield Finding("problem", error.what, error.hint)
        return
    for environment in known:
        yield _used(environment) if environment.used else _created(environment)


def _created(environment: Environment) -> Finding:
    again = f"`rnnbench env remove {environment.id}`, then create it again"
    try:
        inspection = inspect_python(Path(environment.python))
    except UserError as error:
        return Finding("problem", f"{environment.id}: {error.what}", again)
    if fingerprint(inspection) != environment.fingerprint:
        changed = _changes(environment.distributions, inspection.distributions)
        return Finding("problem", f"{environment.id} has changed since it was created: {changed}", again)
    if _outdated(environment):
        return Finding("warning", f"{environment.id} was created from another manifest than today's", again)
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


def _outdated(environment: Environment) -> bool:
    """Whether the manifest would ask for something else today."""
    try:
        spec = msgspec.json.decode((Path(environment.folder) / SPEC).read_bytes(), type=EnvironmentSpec)
        return spec != parse_spec(f"{spec.framework}=={spec.version}", spec.variant)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, UserError):
        return True


def _halves() -> Iterator[Finding]:
    for folder in half_environments():
        hint = f"the next creation replaces it; `rnnbench env remove {folder.name}` frees its space"
        size = units.size(disk_usage(folder))
        yield Finding("warning", f"{folder.name} is a half environment ({size})", hint)
