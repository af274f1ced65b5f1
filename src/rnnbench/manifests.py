"""The manifests of all frameworks (built in, from other packages, from RNNBENCH_SYSTEMS), and hashes of their code."""

import hashlib
import os
import subprocess
import tomllib
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import msgspec

from rnnbench.domain.run import Tool
from rnnbench.domain.system import GRANULARITIES, Manifest, satisfies
from rnnbench.errors import UserError
from rnnbench.files import FUSE, cells_package, fuse_package, worker_package
from rnnbench.version import __version__

ENTRY_POINT = "rnnbench.systems"
VARIABLE = "RNNBENCH_SYSTEMS"  # an environment variable: folders, separated as in PATH


def manifests() -> dict[str, Manifest]:
    """All frameworks by name. Two folders must not have the same name."""
    return _read_all(os.environ.get(VARIABLE, ""))


@lru_cache(maxsize=8)
def _read_all(extra: str) -> dict[str, Manifest]:
    roots = [worker_package() / "systems", *_entry_point_folders()]
    roots += [Path(part) for part in extra.split(os.pathsep) if part]
    found: dict[str, Manifest] = {}
    for folder in (folder for root in roots for folder in _framework_folders(root)):
        manifest = read_manifest(folder)
        if manifest.framework in found:
            raise UserError(
                f"two folders have the framework name '{manifest.framework}'",
                f"{found[manifest.framework].folder} and {folder}: rename one in its manifest.toml",
            )
        found[manifest.framework] = manifest
    return found


def _framework_folders(root: Path) -> list[Path]:
    """The folder itself if it has a manifest, or else its subfolders that have one."""
    if (root / "manifest.toml").is_file():
        return [root]
    if not root.is_dir():
        raise UserError(f"there is no folder {root}", f"it is named by {VARIABLE} or an entry point")
    return sorted(child for child in root.iterdir() if (child / "manifest.toml").is_file())


def _entry_point_folders() -> list[Path]:
    """Folders of installed packages. They are found without importing them, which may need their framework."""
    folders: list[Path] = []
    for entry in metadata.entry_points(group=ENTRY_POINT):
        # Only the outermost package is looked up: to find a package inside it, importlib would import it.
        outermost, *inner = entry.module.split(".")
        spec = find_spec(outermost)
        places = [Path(place, *inner) for place in (spec.submodule_search_locations or [])] if spec else []
        folders += [place for place in places if place.is_dir()]
    return folders


def read_manifest(folder: Path) -> Manifest:
    """Read and check one manifest.toml."""
    path = folder / "manifest.toml"
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        manifest = msgspec.convert(raw, Manifest)
        for entry in manifest.requirements:
            satisfies("0", f"{entry.python},{entry.versions}")
        for gap in manifest.unsupported:
            satisfies("0", gap.versions or "")
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: {error}", "docs/adding-a-system.md describes the fields") from error
    for system in manifest.system:
        if system.granularity not in GRANULARITIES:
            raise UserError(
                f"{path}: granularity '{system.granularity}' is unknown", f"allowed: {', '.join(GRANULARITIES)}"
            )
    filled = {"framework": manifest.framework, "uncorrected_epsilon": manifest.uncorrected_epsilon}
    systems = tuple(msgspec.structs.replace(system, **filled) for system in manifest.system)
    names = [system.name for system in systems]
    if len(set(names)) != len(names):
        raise UserError(f"{path}: a system is declared twice", ", ".join(names))
    return msgspec.structs.replace(manifest, system=systems, folder=str(folder))


def may_offer(manifest: Manifest, name: str) -> bool:
    """Whether a framework's folder may offer this function, found without importing it: it must at least name it."""
    try:
        text = (manifest.path / "__init__.py").read_text(encoding="utf-8")
    except OSError:
        return True
    return name in text or "import *" in text


@lru_cache(maxsize=64)
def source_hash(*folders: Path, pattern: str = "**/*") -> str:
    """A short hash of all files of the folders: it changes with the code, and with any file that the code may read."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.glob(pattern)):
            if path.is_file() and path.suffix != ".pyc":  # compiled by Python from what is hashed already
                content = hashlib.sha256(path.read_bytes()).digest()
                digest.update(str(path.relative_to(folder)).encode() + b"\0" + content)
    return digest.hexdigest()[:16]


def reference_sources() -> str:
    """The hash of the code that says what is right: the reference, and the comparison with it."""
    driver = Path(__file__).resolve().parent
    return source_hash(driver / "reference", driver / "verify", cells_package())


def system_sources(manifest: Manifest) -> str:
    """The hash of all code that computes a framework's rows: its folder, what it uses, and the worker itself.

    Other frameworks are not included: rows stay comparable when another framework is added or changed.
    """
    worker = worker_package().resolve()
    parts = [source_hash(worker, pattern="*"), source_hash(cells_package()), source_hash(manifest.path.resolve())]
    for name in manifest.uses:
        used = worker / name if "/" in name else worker / "systems" / name
        if name == FUSE:
            used = fuse_package()
        if used.is_dir():
            parts.append(source_hash(used))
        elif used.with_suffix(".py").is_file():
            parts.append(source_hash(used.parent, pattern=f"{used.name}.py"))
        else:
            raise UserError(f"{manifest.framework} uses '{name}', which does not exist", f"looked for {used}")
    return "-".join(parts)


def describe_tool() -> Tool:
    sources = {name: system_sources(manifest) for name, manifest in manifests().items()}
    return Tool(
        version=__version__,
        revision=_revision(),
        worker=source_hash(worker_package()),
        reference=reference_sources(),
        sources=sources,
    )


def _revision() -> str:
    """The git revision of the checkout that contains this code; empty if it is not in a checkout."""
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
