"""External interpreters, which users provide with `env use`: those of a cluster, of a container, or their own."""

import os
import shutil
from pathlib import Path

import msgspec

from rnnbench.domain.consistency import require_usable
from rnnbench.domain.run import Environment, current_names
from rnnbench.environments.environment import describe_environment, inspect_python
from rnnbench.environments.spec import same_version, split_spec
from rnnbench.errors import UserError
from rnnbench.files import DAMAGED_JSON, config_folder, read_regular, write_atomically


def external_interpreters() -> dict[str, Environment]:
    """The external interpreters by framework, as they were when `env use` was called."""
    path = _file()
    try:
        known = msgspec.json.decode(current_names(read_regular(path)), type=dict[str, Environment])
        for environment in known.values():
            require_usable(environment)
    except FileNotFoundError:
        return {}
    except (OSError, *DAMAGED_JSON) as error:
        raise UserError(f"cannot read {path}: {error}", "delete it and repeat `rnnbench env use`") from error
    return known


def use_interpreter(text: str, path: Path) -> Environment:
    """From now on, run a framework with this interpreter, or with the one in this environment's folder."""
    environment = interpreter_of(text, path)
    _write(external_interpreters() | {environment.framework: environment})
    return environment


def interpreter_of(text: str, path: Path) -> Environment:
    """This interpreter, or the one in this environment's folder, as an environment of a framework."""
    manifest, version = split_spec(text)
    python = _interpreter_at(path)
    environment = describe_environment(manifest, python, inspect_python(python, external=True))
    if version and not same_version(environment.version, version):
        raise UserError(
            f"{python} has {manifest.title} {environment.version}, not {version}",
            f"name that version, or none: rnnbench env use {manifest.framework} {path}",
        )
    return environment


def forget_interpreter(framework: str) -> Environment:
    """Return to created environments. The interpreter itself is not changed."""
    known = external_interpreters()
    environment = known.pop(framework)
    _write(known)
    return environment


def refreshed(environment: Environment) -> Environment:
    """An external environment as it is now: its owner may have changed it."""
    framework, python = environment.framework, Path(environment.python)
    try:
        manifest, _ = split_spec(framework)
        return describe_environment(manifest, python, inspect_python(python, external=True))
    except UserError as error:
        raise UserError(
            f"the external interpreter for {framework} no longer works: {error.what}",
            f"name another one with `rnnbench env use {framework} PATH`, or forget it with "
            f"`rnnbench env remove {environment.id}`",
        ) from error


def _interpreter_at(path: Path) -> Path:
    """The interpreter at a path or on PATH. Links are kept: in a venv the interpreter is a link."""
    python = Path(os.path.abspath(path.expanduser()))
    if python.is_dir():
        python = python / "bin" / "python"
    if python.exists():
        return python
    on_path = shutil.which(path) if len(path.parts) == 1 else None
    if on_path is None:
        raise UserError(f"there is no interpreter {python}", "name a Python, or a folder that contains bin/python")
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
