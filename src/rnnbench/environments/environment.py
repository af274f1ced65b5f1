"""Inspecting an environment: which interpreter it has, and exactly what is installed in it."""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from rnnbench.domain.consistency import require_usable
from rnnbench.domain.run import Environment
from rnnbench.domain.system import Manifest, satisfies
from rnnbench.errors import UserError

# These are set for the interpreter that runs the driver, and are wrong for every other one.
_DRIVER_VARIABLES = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")

_TIMEOUT_SECONDS = 60.0  # on a cluster's file system the first start of an interpreter can be slow

# Runs under Python 3.6 and newer, with the standard library only. First it takes the current folder
# off the path: nothing in it belongs to the environment.
_LIST_DISTRIBUTIONS = """
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
    """What an interpreter reports about itself."""

    python_version: str
    executable: str
    distributions: dict[str, str]  # normalised name -> version


def child_variables(*, external: bool = False) -> dict[str, str]:
    """The environment variables for other interpreters: the user's, without those meant for the driver.

    PIP_* is kept, because users configure pip with it. An external interpreter also keeps PYTHONPATH:
    environment modules on clusters use it to provide a framework.
    """
    dropped = [name for name in _DRIVER_VARIABLES if not (external and name == "PYTHONPATH")]
    return {name: value for name, value in os.environ.items() if name not in dropped}


#: Variables that change a framework's arithmetic, its kernels or how it compiles, by how their names begin.
_ARITHMETIC = (
    "NVIDIA_TF32_OVERRIDE", "CUBLAS_", "CUDNN_", "CUDA_", "DNNL_", "ONEDNN_", "MKL_", "OPENBLAS_", "BLIS_", "OMP_",
    "KMP_", "GOMP_", "ATEN_", "TORCH", "PYTORCH_", "TRITON_", "XLA_", "TF_", "JAX_", "KERAS_", "PYTENSOR_", "THEANO_",
    "NUMBA_", "ORT_", "OV_", "NPY_", "LD_PRELOAD", "LD_LIBRARY_PATH",
)  # fmt: skip


def arithmetic_variables() -> dict[str, str]:
    """The variables of this process that workers inherit and that may change what they compute."""
    return {name: value for name, value in sorted(child_variables().items()) if name.startswith(_ARITHMETIC)}


def inspect_python(path: Path, *, external: bool = False) -> Inspection:
    """Start the interpreter at `path` and list its distributions; `external` if rnnbench did not create it."""
    # A created environment is a venv and complete: `-I` excludes everything outside of it.
    command = [str(path), *([] if external else ["-I"]), "-c", _LIST_DISTRIBUTIONS]
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            env=child_variables(external=external),
        )
    except OSError as error:
        raise _failure(path, error.strerror or str(error)) from error
    except subprocess.TimeoutExpired as error:
        raise _failure(path, f"no answer within {_TIMEOUT_SECONDS:.0f} s") from error
    if answer.returncode != 0:
        complaint = answer.stderr.strip().splitlines()
        raise _failure(path, complaint[-1] if complaint else f"exit code {answer.returncode}")
    try:
        # Only the last line: a start-up file of the site may have printed something before it.
        report = json.loads(answer.stdout.strip().splitlines()[-1])
        inspection = Inspection(report["version"], report["executable"], _importable(report["pairs"]))
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _failure(path, "it does not answer like a Python interpreter") from error
    if not satisfies(inspection.python_version, ">=3.6"):
        raise _failure(path, f"it is Python {inspection.python_version}")
    return inspection


def canonical_name(name: str) -> str:
    """The normalised name of a distribution: `foo-bar` for `Foo_Bar` and `foo.bar`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _importable(pairs: list[list[str]]) -> dict[str, str]:
    """The versions that an import would find: of two distributions of one name, the one earlier on the path."""
    found: dict[str, str] = {}
    for name, version in pairs:
        if version:
            found.setdefault(canonical_name(name), version)
    return dict(sorted(found.items()))


def _failure(path: Path, reason: str) -> UserError:
    return UserError(f"cannot run {path} as a Python interpreter: {reason}", "Python 3.6 or newer is needed")


def describe_environment(
    manifest: Manifest, python: Path, inspection: Inspection, *, id: str = "", folder: str = ""
) -> Environment:
    """The environment that was inspected. Without a folder it is external, and its id follows from its version."""
    installed = inspection.distributions
    # One framework may have two distributions: ONNX Runtime's CUDA build has another name.
    packages = manifest.package.split("|")
    package = next((name for name in packages if canonical_name(name) in installed), packages[0])
    missing = [name for name in (package, "numpy") if canonical_name(name) not in installed]
    if missing:
        raise UserError(
            f"{python} (Python {inspection.python_version}) cannot run {manifest.title}: it lacks "
            + " and ".join(missing),
            f"install what is missing there: {python} -m pip install {' '.join(missing)}",
        )
    version = installed[canonical_name(package)]
    environment = Environment(
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
    try:
        require_usable(environment)
    except ValueError as error:
        raise UserError(f"{python} cannot be used: {error}", "install a release of the framework there") from error
    return environment


def fingerprint(inspection: Inspection) -> str:
    """A short hash that changes with the interpreter and with every distribution."""
    facts = [inspection.python_version, inspection.executable, sorted(inspection.distributions.items())]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]
