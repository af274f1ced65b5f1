"""Finding Python interpreters on this machine, and choosing one to create an environment with."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version

from rnnbench.domain.system import satisfies, version_key
from rnnbench.environments.environment import child_variables
from rnnbench.errors import UserError

_TIMEOUT_SECONDS = 5.0
_FILE_NAME = re.compile(r"python3(\.\d+)?")
_SUGGESTED_MINORS = range(14, 5, -1)  # newest first
_UV_VERSIONS = ">=3.7"  # what uv can install

# Prints the real path behind links and shims, so that each interpreter counts once. Frameworks offer wheels for
# standard CPython only, so other implementations and the free-threaded build exit with an error and are left out.
_PROBE = """
import os, platform, sys
assert sys.implementation.name == "cpython" and "t" not in sys.abiflags
print(platform.python_version())
print(os.path.realpath(sys.executable))
"""


class Interpreter(NamedTuple):
    """An interpreter that was started and answered."""

    path: Path
    version: str


def find_interpreters() -> list[Interpreter]:
    """The running interpreter, then those on PATH, of pyenv and of uv; each real file once."""
    candidates = list(dict.fromkeys(path.resolve() for path in _candidates()))
    with ThreadPoolExecutor(max_workers=4) as pool:
        answers = list(pool.map(_probe, candidates))
    return list(dict.fromkeys(answer for answer in answers if answer is not None))


def choose_interpreter(requirement: str) -> Interpreter:
    """An interpreter that satisfies `>=3.10,<3.14` and can create environments; otherwise a UserError.

    The running one is preferred, because the user chose it; then the newest, which has the most wheels.
    """
    found = find_interpreters()
    fitting = [each for each in found if satisfies(each.version, requirement)]
    running = Path(sys.executable).resolve()

    def preference(each: Interpreter) -> tuple[bool, Version]:
        return each.path == running, version_key(each.version)

    for each in sorted(fitting, key=preference, reverse=True):
        if _has_venv(each.path):
            return each
    versions = ", ".join(sorted({each.version for each in found}, key=version_key)) or "none"
    version = _version_to_suggest(requirement)
    # A run's tables show this line without the hint, so it names one command itself.
    what = (
        f"no interpreter: no Python {requirement} here can create an environment (found: {versions}); "
        f"`pyenv install {version}` provides one"
    )
    if fitting:
        what += "; ensurepip is missing from " + ", ".join(str(each.path) for each in fitting)
    raise UserError(what, _how_to_install(version))


def no_interpreter(requirement: str) -> str:
    """Why no environment can be created here, in one line with a command that helps; empty if one can."""
    try:
        choose_interpreter(requirement)
    except UserError as error:
        return error.what
    return ""


def _version_to_suggest(requirement: str) -> str:
    """The newest release that fits, like `3.13`."""
    fitting = (f"3.{minor}" for minor in _SUGGESTED_MINORS if satisfies(f"3.{minor}", requirement))
    return next(fitting, requirement.strip("=<>~! "))


def _how_to_install(version: str) -> str:
    uv = f"  uv python install {version}\n" if satisfies(version, _UV_VERSIONS) else ""
    return (
        f"install one in any of these ways:\n"
        f"  pyenv install {version}\n"
        f"{uv}"
        f"  your system's package manager: python{version} and python{version}-venv\n"
        f"or name an interpreter that already has the framework: rnnbench env use FRAMEWORK PATH"
    )


def _candidates() -> Iterator[Path]:
    yield Path(sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for entry in filter(None, os.environ.get("PATH", "").split(os.pathsep)):
        # The shims only start, slowly, what is found below, or fail.
        if Path(entry) != pyenv / "shims":
            yield from _pythons(Path(entry))
    yield from sorted(pyenv.glob("versions/*/bin/python"))
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path(data) / "uv" / "python")
    for folder in sorted(uv.glob("*/bin")):
        yield from _pythons(folder)


def _pythons(folder: Path) -> list[Path]:
    """`python3`, `python3.12`, but not `python3-config`."""
    try:
        return sorted(path for path in folder.iterdir() if _FILE_NAME.fullmatch(path.name))
    except OSError:
        return []  # PATH may name folders that do not exist or cannot be read


@cache
def _probe(path: Path) -> Interpreter | None:
    answer = _output(path, _PROBE).splitlines()
    return Interpreter(Path(answer[1]), answer[0]) if len(answer) == 2 else None


@cache
def _has_venv(path: Path) -> bool:
    """Some Linux distributions package Python without the modules that create environments."""
    return _output(path, "import ensurepip, venv; print('yes')").strip() == "yes"


def _output(path: Path, script: str) -> str:
    """What the script prints; empty if it fails or does not end in time."""
    try:
        answer = subprocess.run(
            [str(path), "-I", "-S", "-c", script],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            env=child_variables(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout if answer.returncode == 0 else ""
