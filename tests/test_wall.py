"""The walls: the driver imports no framework, the worker nothing old Pythons lack, and layers only look down."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rnnbench
from rnnbench.files import FUSE, cells_package, worker_package
from rnnbench.manifests import manifests

DRIVER = Path(rnnbench.__file__).parent
WORKER = worker_package()
DEPENDENCIES = {"typer", "rich", "msgspec", "numpy", "packaging", "psutil", "jinja2", "altair", "vl_convert"}

CELLS = cells_package()
DRIVER_FILES = sorted(DRIVER.rglob("*.py"))
WORKER_FILES = sorted(WORKER.rglob("*.py"))


def imported(path):
    """The outermost packages that a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


def framework_of(path):
    """The framework whose folder a worker's file lies in, the module of `shared` that it is, or ""."""
    parts = path.relative_to(WORKER).with_suffix("").parts
    if parts[0] == "shared" and parts[1] != "__init__":
        return f"shared/{parts[1]}"
    return parts[1] if parts[0] == "systems" and len(parts) > 2 else ""


def own_packages(folder):
    """What a framework's folder may import besides: what its manifest has installed, or that of those who use it."""
    users = [one for one in manifests().values() if folder and folder in (one.path.name, *one.uses)]
    lines = [line for one in users for entry in one.requirements for line in (*entry.cpu, *entry.cuda)]
    names = {
        folder,
        *({FUSE} if any(FUSE in one.uses for one in users) else ()),
        *(one.package for one in users),
        *(re.match(r"[\w.-]+", line)[0] for line in lines),
    }
    return names | {name.partition("-")[0] for name in names}


def used_by(folder):
    """What of the worker's `systems` and `shared` the files of a framework, or a shared module, import."""
    for path in (one for one in WORKER_FILES if framework_of(one) == folder):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module.partition(".")[0] == FUSE:
                    yield FUSE
                parts = [name.split(".") for name in names if name.startswith("rnnbench_worker.")]
                yield from (name[2] for name in parts if name[1] == "systems")
                yield from (f"shared/{name[2]}" for name in parts if name[1] == "shared")


def all_used_by(folder):
    """The same, with what those use in turn."""
    found, waiting = set(), [folder]
    while waiting:
        new = set(used_by(waiting.pop())) - found - {folder}
        found |= new
        waiting += new
    return found


def test_there_is_something_to_look_at():
    assert len(DRIVER_FILES) > 50
    assert len(WORKER_FILES) > 10
    assert {framework_of(path) for path in WORKER_FILES} >= {"", "pytorch"}


def test_the_driver_imports_the_standard_library_and_its_dependencies_only():
    allowed = sys.stdlib_module_names | DEPENDENCIES | {"rnnbench", CELLS.name}
    foreign = {(path.name, name) for path in DRIVER_FILES for name in imported(path) if name not in allowed}
    assert foreign == set()


def test_the_worker_imports_the_standard_library_numpy_and_in_its_folder_the_framework():
    allowed = sys.stdlib_module_names | {"numpy", "rnnbench_worker", CELLS.name}
    for path in WORKER_FILES:
        assert set(imported(path)) <= allowed | own_packages(framework_of(path)), path


def test_the_cells_import_nothing():
    assert {name for path in CELLS.glob("*.py") for name in imported(path)} == {"importlib", "types"}


def test_a_folder_of_systems_is_a_framework():
    # A folder that git has emptied may keep its byte code.
    folders = {path.parent.name for path in (WORKER / "systems").glob("*/*.py")}
    assert folders == {one.path.name for one in manifests().values() if one.path.parent == WORKER / "systems"}


def test_a_manifest_names_all_that_its_framework_uses():
    """A row's source hash covers what its manifest names, no less and no more."""
    built_in = [one for one in manifests().values() if one.path.parent == WORKER / "systems"]
    assert {one.framework: set(one.uses) for one in built_in} == {
        one.framework: all_used_by(one.path.name) for one in built_in
    }


def test_the_worker_never_imports_the_driver():
    assert "rnnbench" not in {name for path in WORKER_FILES for name in imported(path)}


#: The driver's modules and packages, bottom to top. Imports only look down: to a lower line, or within a package.
LAYERS = (
    ("version", "errors"),
    ("domain",),
    ("units", "files", "text", "machine", "scratch"),
    ("method", "manifests", "reference", "stats", "published.rows", "known"),
    ("environments", "store"),
    ("plan", "resuming", "last_run"),
    ("launch", "estimate"),
    ("verify", "profile"),
    ("abilities",),
    ("graph",),
    ("session",),
    ("spread",),
    ("analysis",),
    ("published",),
    ("report",),
    ("api", "cli"),
)
#: These stand beside the machinery of a run: they read the store alone, so that a report never starts anything.
READERS = {"analysis", "published", "report"}
MACHINERY = {
    "environments",
    "plan",
    "launch",
    "verify",
    "profile",
    "abilities",
    "graph",
    "resuming",
    "session",
    "spread",
}


def layer_of(module):
    """(its line in LAYERS, its name there), by the longest name that fits."""
    parts = module.split(".")[1:]
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        for number, names in enumerate(LAYERS):
            if name in names:
                return number, name
    raise AssertionError(f"{module} has no layer: add it to LAYERS")


def imports_of(module, text):
    """The modules of the driver that a module's text imports, wherever the import stands."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "rnnbench":
            yield from (f"rnnbench.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rnnbench."):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("rnnbench."))


def upward_imports(module, text):
    own, name = layer_of(module)
    for imported_module in imports_of(module, text):
        other, other_name = layer_of(imported_module)
        is_down = other < own or other_name == name
        if not is_down or (name in READERS and other_name in MACHINERY):
            yield f"{module} imports {imported_module}"


def test_layers_only_look_down():
    modules = {
        ".".join(path.relative_to(DRIVER.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in DRIVER_FILES
    }
    # The package itself only hands on what the API offers, and `__main__` starts the command line.
    inner = {name: path for name, path in modules.items() if name not in ("rnnbench", "rnnbench.__main__")}
    found = [line for name, path in inner.items() for line in upward_imports(name, path.read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("rnnbench.launch.worker", "from rnnbench.session import run"),
        ("rnnbench.plan", "def late():\n    from rnnbench.launch import worker"),
        ("rnnbench.domain.case", "import rnnbench.units"),
        ("rnnbench.stats.intervals", "from rnnbench import manifests"),  # beside it is not below it
        ("rnnbench.report.html", "from rnnbench.launch.job import make_job"),
        ("rnnbench.published.rows", "from rnnbench.analysis.row import Row"),
    ],
)
def test_an_import_that_looks_up_or_aside_is_found(module, text):
    assert len(list(upward_imports(module, text))) == 1


EVERYTHING = """
import importlib, pkgutil, sys
import rnnbench
for module in pkgutil.walk_packages(rnnbench.__path__, "rnnbench."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from rnnbench.manifests import manifests
assert "pytorch" in manifests()
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_importing_all_of_the_driver_leaves_frameworks_and_the_worker_out():
    answer = subprocess.run([sys.executable, "-c", EVERYTHING], capture_output=True, text=True, check=True)
    loaded = set(answer.stdout.split())
    assert loaded >= DEPENDENCIES
    assert loaded.isdisjoint({"rnnbench_worker", "torch", "tensorflow", "jax", "jaxlib", "keras", "mxnet"})


def test_the_command_line_starts_without_what_only_some_commands_need():
    code = "import sys, rnnbench.cli.main; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(answer.stdout.split()).isdisjoint(
        {"numpy", "msgspec", "rich", "jinja2", "altair", "vl_convert", "rnnbench.api", "rnnbench.plan"}
    )


@pytest.mark.parametrize("path", WORKER_FILES, ids=lambda path: str(path.relative_to(WORKER)))
def test_the_worker_is_python_3_6(path):
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 6))


def python_3_6():
    """A real one, where there is one: it knows best."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [*sorted(root.glob("versions/3.6*/bin/python3.6")), *filter(None, [shutil.which("python3.6")])]
    for path in map(str, found):
        asked = subprocess.run([path, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True)
        if asked.stdout.strip() == "(3, 6)":
            return path
    return None


COMPILE = "import sys\nfor path in sys.argv[1:]: compile(open(path, encoding='utf-8').read(), path, 'exec')"


def test_a_real_python_3_6_compiles_the_worker():
    python = python_3_6()
    if python is None:
        pytest.skip("no Python 3.6 on this machine")
    answer = subprocess.run([python, "-I", "-c", COMPILE, *map(str, WORKER_FILES)], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


def test_a_real_python_3_6_runs_the_parts_that_need_nothing_else():
    """Start it as the driver does: without NumPy it must say so in the protocol, not fall over."""
    python = python_3_6()
    if python is None:
        pytest.skip("no Python 3.6 on this machine")
    reading, writing = os.pipe()
    job = '{"mode": "measure", "cpus": [], "memory_bytes": 0, "folder": "/nowhere", "framework": "none"}'
    try:
        subprocess.run(
            [python, "-m", "rnnbench_worker"], input=job, text=True, capture_output=True, pass_fds=[writing],
            cwd=WORKER.parent, env={"RNNBENCH_CHANNEL": str(writing), "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    finally:
        os.close(writing)
    with os.fdopen(reading) as channel:
        assert '"event": "error"' in channel.read()
