"""rnnfuse imports PyTorch and nothing else of this project; its own tests run in PyTorch's environment."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import KEPT
from rnnbench.environments.registry import find
from rnnbench.environments.spec import parse_spec
from rnnbench.machine import find_gpus

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "src" / "rnnfuse"
TESTS = sorted((HERE / "rnnfuse").glob("test_*.py"))
#: Most of their time is PyTorch's import, so they share a process. Without a GPU those of CUDA are skipped.
QUICK = [
    path
    for path in TESTS
    if path.stem in ("test_beside_loops", "test_choice", "test_sharing", "test_streams")
    or (path.stem.startswith("test_cuda") and not find_gpus())
]
#: In Triton's interpreter.
KERNELS = [path for path in TESTS if path.stem in ("test_persistent", "test_large_products")]
ALONE = [path for path in TESTS if path not in (*QUICK, *KERNELS)]
PROCESSES = {"quick": QUICK, "kernels": KERNELS} | {path.stem: [path] for path in ALONE}
#: What pytest itself is made of: pure Python, so that another interpreter of the same version can use it.
PYTEST = ("py", "pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")
#: Without a GPU PyTorch has none. Its interpreter runs kernels on any machine.
TRITON = "3.9.0"
#: Beside the newest: tested where they are.
OLDER = ("2.6.0", "2.9.1")


def test_it_imports_pytorch_alone():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            for name in names:
                assert name.partition(".")[0] in sys.stdlib_module_names | {"torch"}, f"{path.name} imports {name}"


def test_what_is_private_in_pytorch_is_used_in_one_module():
    for path in PACKAGE.rglob("*.py"):
        if path.name != "private.py":
            assert "torch._" not in path.read_text(encoding="utf-8"), path.name


@pytest.mark.slow
@pytest.mark.torch
def test_its_types_are_strict(environment_of, tmp_path):
    """Not by `make lint`: mypy must see PyTorch, which only PyTorch's environment has."""
    options = ["--strict", "--python-executable", environment_of("pytorch").python, "--cache-dir", str(tmp_path)]
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "-p", "rnnfuse"],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("name", PROCESSES)
def test_in_pytorchs_environment(name, environment_of, tmp_path):
    environment = environment_of("pytorch")
    more = [triton_for(environment.python)] if name == "kernels" else []
    run_its_tests(PROCESSES[name], environment, tmp_path, more)


@pytest.mark.historic
@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("name", ["test_plan", "test_features"])
def test_in_the_environment_of_an_older_pytorch(name, version, tmp_path):
    environment = find(parse_spec(f"pytorch=={version}"))
    if environment is None:
        pytest.skip(f"pytorch=={version} is not here, and large: `rnnbench env create pytorch=={version}` makes it")
    run_its_tests([HERE / "rnnfuse" / f"{name}.py"], environment, tmp_path)


def run_its_tests(paths, environment, folder, more_places=()):
    """By this interpreter's pytest, in another interpreter. What it compiles is kept for later tests."""
    for name in PYTEST:
        found = Path(importlib.util.find_spec(name).origin)
        (folder / (name if found.name == "__init__.py" else found.name)).symlink_to(
            found.parent if found.name == "__init__.py" else found
        )
    here = str(HERE / "rnnfuse")
    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", here, "--confcutdir", here]
    ended = subprocess.run(
        [environment.python, "-m", "pytest", *options, *map(str, paths)],
        env={
            **{name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
            "PYTHONPATH": os.pathsep.join([str(folder), str(PACKAGE.parent), here, *more_places]),
            "TORCHINDUCTOR_CACHE_DIR": str(KEPT / "inductor" / environment.id),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]


def triton_for(python):
    """A folder with Triton for this interpreter, beside the environments: it is downloaded once."""
    folder = KEPT / f"triton-{TRITON}"
    if not folder.exists():
        new = folder.with_name(f"{folder.name}.{os.getpid()}")
        install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(new), f"triton=={TRITON}"]
        ended = subprocess.run(install, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            pytest.skip(f"Triton {TRITON} cannot be installed here: {ended.stderr.strip()[-200:]}")
        new.rename(folder)
    return str(folder)
