"""A small world for the tests of environments: a toy framework, toy wheels, and separate folders."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rnnbench import manifests

RUNNING = ".".join(map(str, sys.version_info[:2]))

_MANIFEST = """
framework = "toy"
title = "Toy"
package = "toy-lib"
version = "1.0"

[[requirements]]
versions = "{versions}"
python = "{python}"
cpu = {cpu}
cuda = {cuda}
cpu_build = {cpu_build}
constraints = {constraints}
tooling = {tooling}

[[system]]
granularity = "fine"
execution = "eager"
description = "Nothing that could be run."
tools = {tools}
"""


# Answers like an interpreter, and creates environments without unpacking pip into each, which takes most of
# the time: they share one pip in another folder. Everything else is real.
_QUICK_PYTHON = """#!/bin/sh
case "$*" in
  *ensurepip*) echo yes ;;
  *"-m venv"*)
    for folder; do :; done
    {python} -I -m venv --without-pip "$folder"
    for site in "$folder"/lib/python*/site-packages; do echo {pip} > "$site/pip.pth"; done ;;
  *) echo 3.99.0; echo {path} ;;
esac
"""


class World:
    """Points every folder and variable that rnnbench and pip look at into `root`."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.cache = root / "cache" / "rnnbench" / "environments"
        self.wheels = root / "wheels"
        self.wheels.mkdir()
        monkeypatch.setenv("PYENV_ROOT", str(root / "pyenv"))
        for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            monkeypatch.setenv(name, str(root / name.split("_")[1].lower()))
        monkeypatch.delenv("PYTHONPATH", raising=False)
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(self.wheels))
        monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
        monkeypatch.setenv("RNNBENCH_SYSTEMS", str(root / "systems"))
        self.manifest()
        self.wheel("toy-lib", "1.0")
        self.wheel("numpy", "9.0")

    def hurry(self, pip: Path) -> None:
        """Let the toy framework require an interpreter that creates environments quickly."""
        path = self.root / "pyenv" / "versions" / "3.99.0" / "bin" / "python"
        path.parent.mkdir(parents=True)
        path.write_text(_QUICK_PYTHON.format(python=sys.executable, pip=pip, path=path))
        path.chmod(0o755)
        self.manifest(python="==3.99")

    def manifest(self, **fields: object) -> None:
        """Write the toy framework's manifest, with some of its fields changed."""
        defaults: dict[str, object] = {
            "versions": "",
            "python": f"=={RUNNING}",
            "cpu": ["toy-lib=={version}", "numpy"],
            "cuda": [],
            "cpu_build": [],
            "constraints": [],
            "tooling": [],
            "tools": [],
        }
        folder = self.root / "systems" / "toy"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "manifest.toml").write_text(_MANIFEST.format(**{**defaults, **fields}))
        manifests._read_all.cache_clear()  # each process reads them once

    def wheel(self, name: str, version: str) -> Path:
        """A wheel that pip installs and that contains only its metadata."""
        stem = f"{name.replace('-', '_')}-{version}"
        path = self.wheels / f"{stem}-py3-none-any.whl"
        info = f"{stem}.dist-info"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", f"{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
        return path

    def brought(self, name: str = "brought", **distributions: str) -> Path:
        """An environment that a user created; without pip, because that takes seconds."""
        folder = self.root / name
        command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
        subprocess.run(command, check=True, env={})
        for distribution, version in distributions.items():
            self.put(folder, distribution.replace("_", "-"), version)
        return folder

    def put(self, environment: Path, name: str, version: str) -> None:
        """Install a distribution's metadata by hand."""
        (site,) = environment.glob("lib/python*/site-packages")
        for old in site.glob(f"{name.replace('-', '_')}-*.dist-info"):
            (old / "METADATA").unlink()
            old.rmdir()
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")

    def folders(self) -> list[str]:
        """The existing environment folders, complete or not."""
        return sorted(path.name for path in self.cache.iterdir() if path.is_dir()) if self.cache.exists() else []
