"""Creating environments, several in parallel: each is created completely, or not at all."""

import errno
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock

import msgspec

from rnnbench import units
from rnnbench.domain.run import Environment
from rnnbench.environments.cache import (
    MARKER_FILE,
    SPEC_FILE,
    folder_of,
    how_to_renew,
    interpreter_exists,
    lock_of,
    log_of,
    outdated,
    read_marker,
    write_marker,
)
from rnnbench.environments.environment import describe_environment, inspect_python
from rnnbench.environments.holding import alone
from rnnbench.environments.interpreters import Interpreter, choose_interpreter
from rnnbench.environments.pip import end_all_commands, explain_failure, found_no_release, run_logged
from rnnbench.environments.spec import EnvironmentSpec, no_wheels, same_version
from rnnbench.errors import UserError
from rnnbench.files import disk_usage, locked, remove_folder
from rnnbench.manifests import manifests


class Passing(str):
    """A reported line that is of interest for a moment only, such as what pip downloads: the log has them all."""


Report = Callable[[str], None]
Make = Callable[[EnvironmentSpec, Report], Environment]
MAX_PARALLEL = 3  # more would only share the same network connection and disk
_POLL_SECONDS = 0.2
_PIP_OPTIONS = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off")
_PIP_PROGRESS = ("Collecting ", "Downloading ", "Using cached ", "Processing ", "Building ", "Installing collected")


def silent(line: str) -> None:
    """A `Report` that shows nothing."""


def create(spec: EnvironmentSpec, report: Report = silent, *, fresh: bool = False) -> Environment:
    """The environment of this spec: the cached one, or a new one. With `fresh` it is always a new one."""
    folder = folder_of(spec.id)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(lock_of(spec.id), lambda: report(f"waiting: {spec.id} is being created")) as lock:
            ready = read_marker(folder)
            if ready is not None and interpreter_exists(ready) and not fresh:
                changes = outdated(ready, spec)
                report(f"{spec.id} exists already")
                if changes:
                    report(f"warning: it was created from other requirements ({changes}); {how_to_renew(ready)}")
                return ready
            if reason := no_wheels(spec.architectures):
                raise UserError(f"cannot create {spec.id}: {reason}", "choose another version, or use another machine")
            choose_interpreter(spec.python)  # raises before the existing environment is touched
            with alone(folder), _replacing(folder):
                return _build(spec, folder, lock, report)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS):
            raise UserError(
                f"cannot create {spec.id} in {folder.parent}: {error.strerror}",
                "free some space there, or set XDG_CACHE_HOME to a folder you can write to",
            ) from error
        raise


@contextmanager
def _replacing(folder: Path) -> Iterator[None]:
    """Put an environment aside while another is made in its place; it comes back if that fails.

    The new one is built where it will stay, because a venv has its own path in its scripts. Until its marker is
    written it is not taken for an environment.
    """
    aside = folder.with_name(f".{folder.name}.aside")
    if (aside / MARKER_FILE).is_file() and not (folder / MARKER_FILE).exists():
        remove_folder(folder)  # an earlier replacement was killed: what it put aside is the environment
        os.rename(aside, folder)
    remove_folder(aside)
    if (folder / MARKER_FILE).exists():
        os.rename(folder, aside)
    else:
        remove_folder(folder)  # left by an interrupted creation
    try:
        yield
    except BaseException:
        if os.path.lexists(aside):
            with suppress(OSError):
                remove_folder(folder)
                os.rename(aside, folder)
        raise
    with suppress(OSError):
        remove_folder(aside)


def _build(spec: EnvironmentSpec, folder: Path, lock: int, report: Report) -> Environment:
    started = time.monotonic()
    interpreter = choose_interpreter(spec.python)
    report(f"creating {spec.id} with Python {interpreter.version}")
    try:
        _install(spec, interpreter, folder, lock, report)
        environment = _inspect(spec, folder)
        size = units.size(disk_usage(folder))
        write_marker(environment)
    except BaseException:
        # Also on KeyboardInterrupt. What cannot be deleted has no marker, so it is never used.
        with suppress(OSError):
            remove_folder(folder)
        raise
    report(f"ready in {time.monotonic() - started:.0f} s, {size}")
    return environment


def _install(spec: EnvironmentSpec, interpreter: Interpreter, folder: Path, lock: int, report: Report) -> None:
    """Create the venv, update pip and its tools where the venv's are too old, then install the framework."""
    path = log_of(spec.id)

    def show_progress(line: str) -> None:
        # A download takes minutes: the user should see that pip is still working.
        if line.startswith(_PIP_PROGRESS):
            line = re.sub(r"\S+://\S*/", "", line)  # old versions of pip print the whole URL; the file name is enough
            report(Passing(line if len(line) <= 100 else line[:99] + "…"))

    def run(*command: str) -> None:
        status, output = run_logged(list(command), log, show_progress, lock)
        if status != 0:
            raise explain_failure(status, output, spec.id, interpreter.version, str(path))

    with path.open("w", encoding="utf-8") as log:
        # With `-I`, no environment variable and no file in the current folder can replace these modules.
        run(str(interpreter.path), "-I", "-m", "venv", str(folder))
        pip = (str(_python(folder)), "-I", "-m", "pip", "install", *_PIP_OPTIONS)
        if spec.tooling:
            report(f"updating {', '.join(spec.tooling)} …")
            run(*pip, "--upgrade", *spec.tooling)
        constraints = folder / "constraints.txt"
        constraints.write_text("".join(f"{line}\n" for line in spec.constraints), encoding="utf-8")
        (folder / SPEC_FILE).write_bytes(msgspec.json.encode(spec))
        for wanted in filter(None, (spec.preferred, spec.requirements)):
            report(f"installing {', '.join(wanted)} …")
            command = [*pip, "-c", str(constraints), *wanted]
            status, output = run_logged(command, log, show_progress, lock)
            if status == 0:
                return
            if wanted is spec.requirements or not found_no_release(output):
                raise explain_failure(status, output, spec.id, interpreter.version, str(path))
            report("pip finds no such build where it looks; taking the usual one")


def _inspect(spec: EnvironmentSpec, folder: Path) -> Environment:
    """The environment as its own interpreter reports it, with the version of the framework checked."""
    python = _python(folder)
    manifest, inspection = manifests()[spec.framework], inspect_python(python)
    environment = describe_environment(manifest, python, inspection, id=spec.id, folder=str(folder))
    if not same_version(environment.version, spec.version):
        raise UserError(
            f"{spec.id} was created with version {environment.version}",
            "your own pip constraints (PIP_CONSTRAINT, pip.conf) may be the cause, or the manifest is wrong",
        )
    return environment


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


class Interrupted(Exception):
    """Raised inside a creation when all creations are cancelled: the incomplete environment is deleted."""


def make_all(specs: Sequence[EnvironmentSpec], make: Make, report: Report = silent) -> list[Environment | UserError]:
    """For each spec its environment, or the error. With several specs, each reported line begins with its id."""
    stopped, reporting = Event(), Lock()

    def make_one(spec: EnvironmentSpec) -> Environment | UserError:
        last_line = ""

        def report_once(line: str) -> None:
            nonlocal last_line
            if stopped.is_set():
                raise Interrupted
            if line != last_line:  # while a creation waits for a lock, it reports that repeatedly
                with reporting:
                    # A passing line is shown in place, alone: it says whose it is.
                    named = len(specs) > 1 or isinstance(line, Passing)
                    report(type(line)(f"{spec.id}: {line}" if named else line))
            last_line = line

        try:
            return make(spec, report_once)
        except UserError as error:
            if len(specs) > 1 and not stopped.is_set():  # the caller reports the error of a single spec
                with reporting:
                    report("\n".join(filter(None, (f"{spec.id}: {error.what}", error.hint))))
            return error

    if len(specs) == 1:
        return [make_one(specs[0])]
    with ThreadPoolExecutor(max_workers=MAX_PARALLEL) as pool:
        futures = [pool.submit(make_one, spec) for spec in specs]
        try:
            return [future.result() for future in futures]
        except BaseException:  # KeyboardInterrupt is raised in this thread only
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            _end_creations(futures)
            raise


def _end_creations(futures: Sequence["Future[Environment | UserError]"]) -> None:
    """End the running commands again and again until no creation is left: each may still start another command."""
    started = [future for future in futures if not future.cancelled()]
    while wait(started, timeout=_POLL_SECONDS).not_done:
        end_all_commands()
