"""An environment as found: which interpreter, and exactly what is installed in it."""

import hashlib
import json
from pathlib import Path

import msgspec

from rnnbench.domain.system import Manifest
from rnnbench.environments.inspect import Inspection, canonical
from rnnbench.errors import UserError


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """One interpreter that can run one framework."""

    id: str  # `pytorch-2.13.0`, `pytorch-2.13.0-cuda`, `pytorch-2.11.0-used`
    framework: str
    version: str  # of the framework's package, as installed
    python: str  # the interpreter to start
    python_version: str
    used: bool  # the user's own, by `env use`; not created here and never deleted
    folder: str  # "" when used
    distributions: dict[str, str]  # name -> version, all that is installed
    fingerprint: str  # the same for two results only if nothing above has changed between them


def describe(
    manifest: Manifest, python: Path, inspection: Inspection, *, id: str = "", folder: str = ""
) -> Environment:
    """The environment behind an inspection. Without a folder it is a used one and names itself."""
    installed = inspection.distributions
    # One framework may be two distributions: ONNX Runtime's CUDA build has a name of its own.
    packages = manifest.package.split("|")
    package = next((name for name in packages if canonical(name) in installed), packages[0])
    lacking = [name for name in (package, "numpy") if canonical(name) not in installed]
    if lacking:
        raise UserError(
            f"{python} (Python {inspection.python_version}) cannot run {manifest.title}: it lacks "
            + " and ".join(lacking),
            f"install what is missing there: {python} -m pip install {' '.join(lacking)}",
        )
    version = installed[canonical(package)]
    return Environment(
        id=id or f"{manifest.framework}-{version}-used",
        framework=manifest.framework,
        version=version,
        python=str(python),
        python_version=inspection.python_version,
        used=not folder,
        folder=folder,
        distributions=installed,
        fingerprint=fingerprint(inspection),
    )


def fingerprint(inspection: Inspection) -> str:
    """Short, and different as soon as the interpreter or any distribution is."""
    facts = [inspection.python_version, inspection.executable, sorted(inspection.distributions.items())]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]
