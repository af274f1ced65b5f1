"""The part of a check-up that concerns the machine: compilers, disk and GPU."""

import os
import shutil
import subprocess
from collections.abc import Iterator

from rnnbench.environments.finding import Finding
from rnnbench.manifests import manifests
from rnnbench.paths import cache_folder
from rnnbench.report import units

_ROOM = 6e9  # bytes: the largest environments take 5 GB


def tools() -> Iterator[Finding]:
    """Programs that some systems start, compilers above all."""
    wanted: dict[str, list[str]] = {}
    for system in (system for manifest in manifests().values() for system in manifest.system):
        for tool in system.tools:
            wanted.setdefault(tool, []).append(system.name)
    for tool, systems in sorted(wanted.items()):
        found = next(filter(None, map(shutil.which, tool.split("|"))), None)
        names = tool.replace("|", " or ")
        if found:
            yield Finding("ok", f"{names}: {found}")
        else:
            others = f" and {len(systems) - 1} more" if len(systems) > 1 else ""
            yield Finding("warning", f"{names} is not on PATH", f"{systems[0]}{others} cannot run without; install one")


def disk() -> Iterator[Finding]:
    """Whether an environment could be written, and whether it would fit."""
    folder = cache_folder()
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        yield Finding("problem", f"cannot write to {folder}", "set XDG_CACHE_HOME to a folder that you may write")
    free = shutil.disk_usage(existing).free
    hint = "environments take 0.4 to 5 GB each; XDG_CACHE_HOME can name another disk"
    yield Finding(
        "ok" if free >= _ROOM else "warning",
        f"{units.size(free)} free in {folder}",
        "" if free >= _ROOM else hint,
    )


def gpu() -> Finding:
    """Whether the driver sees a device. None is fine: everything but `--device cuda` works without."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return Finding("ok", "no nvidia-smi, so no CUDA device is expected here")
    try:
        answer = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=20)
        names = [line.split(" (UUID")[0] for line in answer.stdout.splitlines() if line.startswith("GPU")]
    except (OSError, subprocess.TimeoutExpired):
        names = []
    if names:
        return Finding("ok", "; ".join(names))
    return Finding("warning", "nvidia-smi finds no GPU", f"run {program} to see what the driver says")
