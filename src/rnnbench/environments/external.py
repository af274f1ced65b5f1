"""Interpreters that users bring along by `env use`: a cluster's, a container's, their own."""

import os
import shutil
from pathlib import Path

import msgspec

from rnnbench.domain.run import Environment, current_names
from rnnbench.environments.environment import describe, inspect_python
from rnnbench.environments.spec import same_version, split_spec
from rnnbench.errors import UserError
from rnnbench.files import config_folder, write_atomically


def external_interpreters() -> dict[str, Environment]:
    """The interpreters given, by framework, as they were then."""
    path = _file()
    try:
        return msgspec.json.decode(current_names(path.read_bytes()), type=dict[str, Environment])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}", "delete it and repeat `rnnbench env use`") from error


def use_interpreter(text: str, path: Path) -> Environment:
    """Take this interpreter (or the one in this environment's folder) for a framework from now on."""
    manifest, version = split_spec(text)
    python = _interpreter_at(path)
    environment = describe(manifest, python, inspect_python(python, external=True))
    if version and not same_version(environment.version, version):
        raise UserError(
            f"{python} has {manifest.title} {environment.version}, not {version}",
            f"name that version, or none: rnnbench env use {manifest.framework} {path}",
        )
    _write(external_interpreters() | {manifest.framework: environment})
    return environment


def forget_interpreter(framework: str) -> Environment:
    """Go back to created environments. The interpreter itself is not ours to touch."""
    known = external_interpreters()
    environment = known.pop(framework)
    _write(known)
    return environment


def refreshed(environment: Environment) -> Environment:
    """A used environment as it is now: its owner may have changed it since."""
    framework, python = environment.framework, Path(environment.python)
    try:
        manifest, _ = split_spec(framework)
        return describe(manifest, python, inspect_python(python, external=True))
    except UserError as error:
        raise UserError(
            f"the interpreter given for {framework} no longer serves: {error.what}",
            f"give another with `rnnbench env use {framework} PATH`, or forget it with "
            f"`rnnbench env remove {environment.id}`",
        ) from error


def _interpreter_at(path: Path) -> Path:
    """The interpreter meant. Links are kept: a venv's interpreter is a link, and means the venv."""
    place = Path(os.path.abspath(path.expanduser()))
    if place.is_dir():
        place = place / "bin" / "python"
    if place.exists():
        return place
    on_path = shutil.which(path) if len(path.parts) == 1 else None
    if on_path is None:
        raise UserError(f"there is no interpreter {place}", "give a Python, or a folder with bin/python in it")
    return Path(os.path.abspath(on_path))


def _file() -> Path:
    return config_folder() / "environments.json"


def _write(known: dict[str, Environment]) -> None:
    content = msgspec.json.format(msgspec.json.encode(known), indent=2)
    try:
        write_atomically(_file(), content + b"\n")
    except OSError as error:
        raise UserError(
            f"cannot write {_file()}: {error.strerror}", "set XDG_CONFIG_HOME to a folder you can write to"
        ) from error
