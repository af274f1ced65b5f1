"""Which rnnbench this is: version, git revision, and the hash of the code that computes a row."""

import hashlib
import subprocess
from functools import lru_cache
from pathlib import Path

from rnnbench import __version__
from rnnbench.domain.system import Manifest
from rnnbench.errors import UserError
from rnnbench.manifests import manifests
from rnnbench.paths import worker_package
from rnnbench.store.run import Tool


@lru_cache(maxsize=64)
def source_hash(*folders: Path, pattern: str = "**/*") -> str:
    """A short hash over every Python and TOML file of the folders: code that changed is another system."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.glob(pattern)):
            if path.suffix in (".py", ".toml"):
                digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def system_sources(manifest: Manifest) -> str:
    """The hash of all that computes a framework's rows: its folder, what it uses, and the worker around them.

    Not of other frameworks' folders: a row stays comparable when another framework is added or changed.
    """
    worker = worker_package().resolve()
    parts = [source_hash(worker, pattern="*"), source_hash(manifest.path.resolve())]
    for name in manifest.uses:
        used = worker / name if "/" in name else worker / "systems" / name
        if used.is_dir():
            parts.append(source_hash(used))
        elif used.with_suffix(".py").is_file():
            parts.append(source_hash(used.parent, pattern=f"{used.name}.py"))
        else:
            raise UserError(f"{manifest.framework} uses '{name}', which does not exist", f"looked for {used}")
    return "-".join(parts)


def describe_tool() -> Tool:
    sources = {name: system_sources(manifest) for name, manifest in manifests().items()}
    return Tool(version=__version__, revision=_revision(), worker=source_hash(worker_package()), sources=sources)


def _revision() -> str:
    """The git revision of the checkout this code lies in; empty when it is installed elsewhere."""
    here = Path(__file__).resolve().parent
    try:
        if _git(here, "ls-files", "--error-unmatch", Path(__file__).name) == "":
            return ""
        changed = "+" if _git(here, "status", "--porcelain", "--untracked-files=no") else ""
        return _git(here, "rev-parse", "--short=12", "HEAD") + changed
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
