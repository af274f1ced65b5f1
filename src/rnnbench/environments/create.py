"""Creating an environment: all of it, or nothing."""

import errno
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from rnnbench.environments.commands import run_logged
from rnnbench.environments.environment import Environment, describe
from rnnbench.environments.explain import explain
from rnnbench.environments.inspect import inspect_python
from rnnbench.environments.interpreters import Interpreter, choose_interpreter
from rnnbench.environments.marker import folder_of, lock_of, log_of, read_marker, starts, write_marker
from rnnbench.environments.moved_on import SPEC, how_to_renew, moved_on
from rnnbench.environments.spec import EnvironmentSpec, no_wheels
from rnnbench.environments.versions import same_version
from rnnbench.errors import UserError
from rnnbench.files import disk_usage, remove_folder
from rnnbench.lock import locked
from rnnbench.manifests import manifests
from rnnbench.report import units

Report = Callable[[str], None]

_QUIET = ("--disable-pip-version-check", "--progress-bar", "off")
_ALIVE = ("Collecting ", "Downloading ", "Using cached ", "Processing ", "Building ", "Installing collected")


def silent(line: str) -> None:
    """Report to nobody."""


def create(spec: EnvironmentSpec, report: Report = silent, *, fresh: bool = False) -> Environment:
    """The environment of this spec: the one in the cache, or a new one; always a new one if `fresh`."""
    folder = folder_of(spec.id)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(lock_of(spec.id), lambda: report(f"waiting: {spec.id} is being created")) as lock:
            ready = read_marker(folder)
            if ready is not None and starts(ready) and not fresh:
                changes = moved_on(ready, spec)
                report(f"{spec.id} exists already")
                if changes:
                    report(f"warning: it was created from other requirements ({changes}); {how_to_renew(ready)}")
                return ready
            if reason := no_wheels(spec.architectures):
                raise UserError(f"cannot create {spec.id}: {reason}", "take another version, or another machine")
            if fresh:
                choose_interpreter(spec.python)  # before what is there is lost
            remove_folder(folder)  # what an interrupted creation left, or what is to be made anew
            return _build(spec, folder, lock, report)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS):
            raise UserError(
                f"cannot create {spec.id} in {folder.parent}: {error.strerror}",
                "free some space there, or set XDG_CACHE_HOME to a folder you can write to",
            ) from error
        raise


def _build(spec: EnvironmentSpec, folder: Path, lock: int, report: Report) -> Environment:
    started = time.monotonic()
    interpreter = choose_interpreter(spec.python)
    report(f"creating {spec.id} with Python {interpreter.version}")
    try:
        _fill(spec, interpreter, folder, lock, report)
        environment = _checked(spec, folder)
        size = units.size(disk_usage(folder))
        write_marker(environment)
    except BaseException:
        # KeyboardInterrupt too. Whatever cannot be deleted has no marker and does not count.
        with suppress(OSError):
            remove_folder(folder)
        raise
    report(f"ready in {time.monotonic() - started:.0f} s, {size}")
    return environment


def _fill(spec: EnvironmentSpec, interpreter: Interpreter, folder: Path, lock: int, report: Report) -> None:
    """venv, then newer tools where the venv's are too old, then the framework."""
    path = log_of(spec.id)

    def hear(line: str) -> None:
        # A download takes minutes: whoever waits should see that something is going on.
        if line.startswith(_ALIVE):
            line = re.sub(r"\S+://\S*/", "", line)  # old pips print addresses; the file's name says more
            report(f"  {line if len(line) <= 100 else line[:99] + '…'}")

    def run(*command: str) -> None:
        status, output = run_logged(list(command), log, hear, lock)
        if status != 0:
            raise explain(status, output, spec.id, interpreter.version, str(path))

    with path.open("w", encoding="utf-8") as log:
        # `-I`: no variable and no file in the current folder can change which modules these commands are.
        run(str(interpreter.path), "-I", "-m", "venv", str(folder))
        pip = (str(_python(folder)), "-I", "-m", "pip", "install", "--no-input", *_QUIET)
        if spec.tooling:
            report(f"updating {', '.join(spec.tooling)} …")
            run(*pip, "--upgrade", *spec.tooling)
        constraints = folder / "constraints.txt"
        constraints.write_text("".join(f"{line}\n" for line in spec.constraints), encoding="utf-8")
        (folder / SPEC).write_bytes(msgspec.json.encode(spec))
        report(f"installing {', '.join(spec.requirements)} …")
        run(*pip, "-c", str(constraints), *spec.requirements)


def _checked(spec: EnvironmentSpec, folder: Path) -> Environment:
    """What pip says it installed, as the new interpreter sees it."""
    python = _python(folder)
    environment = describe(manifests()[spec.framework], python, inspect_python(python), id=spec.id, folder=str(folder))
    if not same_version(environment.version, spec.version):
        raise UserError(
            f"{spec.id} came out with version {environment.version}",
            "a constraint of your own (PIP_CONSTRAINT, pip.conf) may be in the way, or the manifest is wrong",
        )
    return environment


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"
