"""Creating an environment: all of it, or nothing."""

import errno
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock

import msgspec

from rnnbench import units
from rnnbench.domain.run import Environment
from rnnbench.environments.cache import (
    SPEC,
    folder_of,
    how_to_renew,
    lock_of,
    log_of,
    outdated,
    read_marker,
    starts,
    write_marker,
)
from rnnbench.environments.environment import describe, inspect_python
from rnnbench.environments.interpreters import Interpreter, choose_interpreter
from rnnbench.environments.pip import end_all_commands, explain_failure, run_logged
from rnnbench.environments.spec import EnvironmentSpec, no_wheels, same_version
from rnnbench.errors import UserError
from rnnbench.files import disk_usage, locked, remove_folder
from rnnbench.manifests import manifests

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
                changes = outdated(ready, spec)
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
            raise explain_failure(status, output, spec.id, interpreter.version, str(path))

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


AT_A_TIME = 3  # more would share the same line and the same disk
_PATIENCE = 0.2  # seconds between two looks at whether all have ended
Make = Callable[[EnvironmentSpec, Report], Environment]


class Interrupted(Exception):
    """Raised inside a creation when the whole is given up: what it has made is deleted."""


def make_all(specs: Sequence[EnvironmentSpec], make: Make, report: Report = silent) -> list[Environment | UserError]:
    """For each spec its environment, or why there is none. What is reported of several begins with whose it is."""
    stopped, talking = Event(), Lock()

    def one(spec: EnvironmentSpec) -> Environment | UserError:
        said = ""

        def say(line: str) -> None:
            nonlocal said
            if stopped.is_set():
                raise Interrupted
            if line != said:  # who waits for another process says so at every look
                with talking:
                    report(line if len(specs) == 1 else f"{spec.id}: {line.strip()}")
            said = line

        try:
            return make(spec, say)
        except UserError as error:
            if len(specs) > 1 and not stopped.is_set():  # a single one is for the caller to tell
                with talking:
                    report("\n".join(filter(None, (f"{spec.id}: {error.what}", error.hint))))
            return error

    if len(specs) == 1:
        return [one(specs[0])]
    with ThreadPoolExecutor(max_workers=AT_A_TIME) as pool:
        futures = [pool.submit(one, spec) for spec in specs]
        try:
            return [future.result() for future in futures]
        except BaseException:  # an interruption, which reaches this thread alone
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            _end(futures)
            raise


def _end(futures: Sequence["Future[Environment | UserError]"]) -> None:
    """End what pips are at work until no creation is left: one may just be about to start another."""
    begun = [future for future in futures if not future.cancelled()]
    while wait(begun, timeout=_PATIENCE).not_done:
        end_all_commands()
