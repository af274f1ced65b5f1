"""An environment as found: which interpreter, and exactly what is installed in it."""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from rnnbench.domain.run import Environment
from rnnbench.domain.system import Manifest, satisfies
from rnnbench.errors import UserError

# Set for the interpreter that runs the driver, and wrong for every other one.
_FOREIGN = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


def child_variables(*, external: bool = False) -> dict[str, str]:
    """The user's variables without the driver's. PIP_* stays: it is how a user configures pip.

    A used interpreter keeps PYTHONPATH, because a cluster's modules put a framework on it.
    """
    dropped = [name for name in _FOREIGN if not (external and name == "PYTHONPATH")]
    return {name: value for name, value in os.environ.items() if name not in dropped}


_SECONDS = 60.0  # a cluster's file system can take long to start its first interpreter

# Runs under every Python from 3.6 on, with its standard library only. The folder the driver happens
# to be in is taken off the path first: nothing in it belongs to the environment.
_SCRIPT = """
import sys
sys.path[:] = [entry for entry in sys.path if entry]
import json, platform
try:
    from importlib.metadata import distributions
    found = [(each.metadata, each) for each in distributions()]
    pairs = [(metadata["Name"], each.version) for metadata, each in found if metadata and "Name" in metadata]
except ImportError:
    import pkg_resources
    pairs = [(each.project_name, each.version) for each in pkg_resources.working_set if each.has_version()]
answer = {"version": platform.python_version(), "executable": sys.executable, "pairs": pairs}
sys.stdout.write("\\n" + json.dumps(answer) + "\\n")
"""


class Inspection(NamedTuple):
    """What an interpreter says of itself."""

    python_version: str
    executable: str
    distributions: dict[str, str]  # normalised name -> version


def inspect_python(path: Path, *, external: bool = False) -> Inspection:
    """Start the interpreter at `path` and list its distributions; `used` if it is not one of ours."""
    # One of ours is a venv and complete in itself: `-I` shuts out everything else.
    command = [str(path), *([] if external else ["-I"]), "-c", _SCRIPT]
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            env=child_variables(external=external),
        )
    except OSError as error:
        raise _failure(path, error.strerror or str(error)) from error
    except subprocess.TimeoutExpired as error:
        raise _failure(path, f"no answer within {_SECONDS:.0f} s") from error
    if answer.returncode != 0:
        complaint = answer.stderr.strip().splitlines()
        raise _failure(path, complaint[-1] if complaint else f"exit status {answer.returncode}")
    try:
        # Only the last line: a site's start-up file may have printed something before.
        said = json.loads(answer.stdout.strip().splitlines()[-1])
        inspection = Inspection(said["version"], said["executable"], _first_of_each(said["pairs"]))
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise _failure(path, "it does not answer like a Python interpreter") from error
    if not satisfies(inspection.python_version, ">=3.6"):
        raise _failure(path, f"it is Python {inspection.python_version}")
    return inspection


def canonical_name(name: str) -> str:
    """The one spelling of a distribution's name: `Foo_Bar` and `foo.bar` are `foo-bar`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _first_of_each(pairs: list[list[str]]) -> dict[str, str]:
    """What an import would find: of two distributions of one name, the one earlier on the path."""
    found: dict[str, str] = {}
    for name, version in pairs:
        if version:
            found.setdefault(canonical_name(name), version)
    return dict(sorted(found.items()))


def _failure(path: Path, reason: str) -> UserError:
    return UserError(f"cannot run {path} as a Python interpreter: {reason}", "Python 3.6 or newer is needed")


def describe(
    manifest: Manifest, python: Path, inspection: Inspection, *, id: str = "", folder: str = ""
) -> Environment:
    """The environment behind an inspection. Without a folder it is a used one and names itself."""
    installed = inspection.distributions
    # One framework may be two distributions: ONNX Runtime's CUDA build has a name of its own.
    packages = manifest.package.split("|")
    package = next((name for name in packages if canonical_name(name) in installed), packages[0])
    lacking = [name for name in (package, "numpy") if canonical_name(name) not in installed]
    if lacking:
        raise UserError(
            f"{python} (Python {inspection.python_version}) cannot run {manifest.title}: it lacks "
            + " and ".join(lacking),
            f"install what is missing there: {python} -m pip install {' '.join(lacking)}",
        )
    version = installed[canonical_name(package)]
    return Environment(
        id=id or f"{manifest.framework}-{version}-used",
        framework=manifest.framework,
        version=version,
        python=str(python),
        python_version=inspection.python_version,
        external=not folder,
        folder=folder,
        distributions=installed,
        fingerprint=fingerprint(inspection),
    )


def fingerprint(inspection: Inspection) -> str:
    """Short, and different as soon as the interpreter or any distribution is."""
    facts = [inspection.python_version, inspection.executable, sorted(inspection.distributions.items())]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]
