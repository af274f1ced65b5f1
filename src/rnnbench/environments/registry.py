"""Which environments exist, which of them runs a spec, and how they are removed."""

from pathlib import Path

from rnnbench.domain.run import Environment
from rnnbench.environments.cache import (
    MARKER_FILE,
    environments_folder,
    folder_of,
    how_to_renew,
    interpreter_exists,
    lock_of,
    log_of,
    outdated,
    read_marker,
)
from rnnbench.environments.create import Report, create, silent
from rnnbench.environments.external import external_interpreters, forget_interpreter, refreshed
from rnnbench.environments.holding import alone
from rnnbench.environments.spec import EnvironmentSpec, same_version
from rnnbench.errors import UserError, nearest
from rnnbench.files import is_locked, locked, remove_folder
from rnnbench.manifests import manifests


def list_environments() -> list[Environment]:
    """The created environments that are complete, then the external ones."""
    created = (read_marker(folder) for folder in _folders())
    return [*(each for each in created if each is not None), *external_interpreters().values()]


def incomplete_environments() -> list[Path]:
    """Folders of creations that were interrupted; a creation that is still running is not among them."""
    return [folder for folder in _folders() if read_marker(folder) is None and not is_locked(lock_of(folder.name))]


def failed_creations() -> list[str]:
    """Environments of which only the log exists, because their creation failed or was interrupted."""
    root = environments_folder()
    names = sorted(path.stem for path in root.glob("*.log")) if root.is_dir() else []
    return [name for name in names if not folder_of(name).exists() and not is_locked(lock_of(name))]


def find(spec: EnvironmentSpec) -> Environment | None:
    """The environment that runs this spec: an external one if it has that version, or else a created one."""
    is_default = spec.version == manifests()[spec.framework].version
    own = external_interpreters().get(spec.framework)
    if own is not None and (is_default or same_version(own.version, spec.version)):
        own = refreshed(own)
        if is_default or same_version(own.version, spec.version):
            return own
    created = read_marker(folder_of(spec.id))
    return created if created is not None and interpreter_exists(created) else None


def resolve(spec: EnvironmentSpec, create_missing: bool, report: Report = silent) -> Environment:
    """The environment that runs this spec; a missing one is created on request."""
    found = find(spec)
    if found is not None:
        if not found.external and (changes := outdated(found, spec)):
            report(f"warning: {found.id} was created from other requirements ({changes}); {how_to_renew(found)}")
        return found
    if create_missing:
        return create(spec, report)
    is_default = spec.version == manifests()[spec.framework].version
    name = spec.framework if is_default else f"{spec.framework}=={spec.version}"
    option = " --device cuda" if spec.variant == "cuda" else ""
    raise UserError(f"the environment {spec.id} does not exist", f"run `rnnbench env create {name}{option}`")


def remove(id_or_framework: str) -> str:
    """Delete a created environment, or forget an external one; returns what was done."""
    name = id_or_framework.strip().replace("==", "-")
    known = {each.id: each for each in list_environments()}
    incomplete = [folder.name for folder in incomplete_environments()]
    matches = [id for id, each in known.items() if name in (id, each.framework)]
    matches += [id for id in incomplete if id == name]
    if not matches:
        hint = nearest(name, [*known, *incomplete]) if known or incomplete else "there are no environments"
        raise UserError(f"no environment is named '{name}'", hint)
    if len(matches) > 1:
        raise UserError(f"'{name}' has {len(matches)} environments", f"name one: {', '.join(matches)}")
    environment = known.get(matches[0])
    if environment is not None and environment.external:
        forget_interpreter(environment.framework)
        return f"forgot {environment.python} for {environment.framework}; the interpreter is untouched"
    return _delete(matches[0])


def _delete(id: str) -> str:
    folder = folder_of(id)
    try:
        with locked(lock_of(id)), alone(folder):
            # The marker goes first: if the deletion is interrupted, the rest is not taken for an environment.
            (folder / MARKER_FILE).unlink(missing_ok=True)
            remove_folder(folder)
            log_of(id).unlink(missing_ok=True)
    except BlockingIOError as error:
        raise UserError(f"{id} is being created", "wait until it is created, or stop its creation") from error
    except OSError as error:
        raise UserError(f"cannot delete {folder}: {error.strerror}", "delete it yourself") from error
    return f"deleted {folder}"


def _folders() -> list[Path]:
    root = environments_folder()
    return sorted(path for path in root.iterdir() if path.is_dir() and path.name[:1] != ".") if root.is_dir() else []
