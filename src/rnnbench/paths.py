"""Where rnnbench keeps things between runs: the XDG folders, so that a user can move or delete them."""

import os
from pathlib import Path


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    # The XDG specification says a relative path there is to be ignored.
    base = Path(value) if value and os.path.isabs(value) else Path.home() / default
    return base / "rnnbench"


def cache_folder() -> Path:
    """Environments and verification results: can be deleted at any time."""
    return _xdg("XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """What the user told us and could not be found out again: interpreters given by `env use`."""
    return _xdg("XDG_CONFIG_HOME", ".config")


def worker_package() -> Path:
    """The folder of `rnnbench_worker`, found without importing it: the driver never runs worker code."""
    import importlib.util

    spec = importlib.util.find_spec("rnnbench_worker")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the package rnnbench_worker is not installed beside rnnbench")
    return Path(next(iter(spec.submodule_search_locations)))
