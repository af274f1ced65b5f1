"""Creating environments, for real: reuse, interruption, failure and two at once."""

import ensurepip
import errno
import json
import os
import signal
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from environments_world import World
from rnnbench.environments import create as create_module
from rnnbench.environments.create import Passing, create
from rnnbench.environments.pip import explain_failure
from rnnbench.environments.registry import incomplete_environments, list_environments
from rnnbench.environments.spec import parse_spec
from rnnbench.errors import UserError


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pip that comes with Python."""
    folder = tmp_path_factory.mktemp("pip")
    wheel = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"), None)
    if wheel is None:
        pytest.skip("this Python keeps its pip in an unusual place")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def quick(world: World, pip: Path) -> World:
    world.hurry(pip)
    return world


def test_an_environment_is_created_once_and_reused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.manifest(constraints=["numpy==9.0"])
    world.wheel("numpy", "9.5")
    # The user's pip configuration applies, except for this setting, which cannot work in an environment.
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("PYTHONPATH", str(world.root))
    monkeypatch.setenv("PYTHONHOME", str(world.root))
    lines: list[str] = []
    environment = create(parse_spec("toy"), lines.append)

    assert environment.id == "toy-1.0"
    assert environment.folder == str(world.cache / "toy-1.0")
    assert environment.python.startswith(environment.folder)
    assert environment.version == "1.0"
    assert environment.distributions["numpy"] == "9.0"  # as constrained, though 9.5 was on offer
    assert not environment.external
    subprocess.run([environment.python, "-m", "pip", "--version"], check=True, capture_output=True, env={})

    assert lines[0].startswith("creating toy-1.0 with Python 3.")
    assert "installing toy-lib==1.0, numpy …" in lines
    passing = [line for line in lines if isinstance(line, Passing)]
    assert any(line.startswith("Processing") for line in passing)  # pip's lines are shown in place, and only there
    assert not any(line.startswith("Processing") for line in lines if line not in passing)
    assert lines[-1].startswith("ready in ")
    assert "pip install" in (world.cache / "toy-1.0.log").read_text()

    again: list[str] = []
    assert create(parse_spec("toy"), again.append) == environment
    assert again == ["toy-1.0 exists already"]
    assert list_environments() == [environment]


def test_newer_tools_are_installed_before_the_framework(quick: World) -> None:
    quick.manifest(python="==3.99", tooling=["newer-tool==2.0"], constraints=["newer-tool==1.0"])
    quick.wheel("newer-tool", "2.0")
    lines: list[str] = []
    environment = create(parse_spec("toy"), lines.append)
    assert environment.distributions["newer-tool"] == "2.0"
    assert lines.index("updating newer-tool==2.0 …") < lines.index("installing toy-lib==1.0, numpy …")


def test_an_interrupt_leaves_nothing_behind(quick: World) -> None:
    def interrupt(line: str) -> None:
        if line.startswith("Processing"):  # pip is at work
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create(parse_spec("toy"), interrupt)
    assert quick.folders() == []
    assert list_environments() == incomplete_environments() == []


def test_a_killed_creation_does_not_count_and_two_at_once_build_the_next(quick: World) -> None:
    program = (
        "import os, signal\n"
        "from rnnbench.environments.create import create\n"
        "from rnnbench.environments.spec import parse_spec\n"
        "def report(line):\n"
        "    if line.startswith('Processing'): os.kill(os.getpid(), signal.SIGKILL)\n"
        "create(parse_spec('toy'), report)\n"
    )
    source = Path(sys.modules["rnnbench.errors"].__file__ or "").parents[1]
    child = subprocess.run([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(source)})
    assert child.returncode == -signal.SIGKILL
    assert quick.folders() == ["toy-1.0"]
    assert list_environments() == []

    # Its pip may still be running; it holds the lock, so what follows waits for it to end.
    lines: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: create(parse_spec("toy"), lines.append), range(2))
    assert one == other
    assert len([line for line in lines if line.startswith("creating toy-1.0 with Python")]) == 1
    assert "waiting: toy-1.0 is being created" in lines
    assert list_environments() == [one]
    assert incomplete_environments() == []


def no_gpu(monkeypatch: pytest.MonkeyPatch, *gpus: object) -> None:
    monkeypatch.setattr("rnnbench.environments.spec.find_gpus", lambda: gpus)


def test_without_a_gpu_the_smaller_build_is_taken_where_pip_finds_it(
    quick: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_gpu(monkeypatch)
    quick.manifest(python="==3.99", cpu_build=["toy-lib=={version}+cpu", "numpy"])
    quick.wheel("toy-lib", "1.0+cpu")
    environment = create(parse_spec("toy"))
    assert (environment.id, environment.version) == ("toy-1.0", "1.0+cpu")


def test_where_pip_finds_no_smaller_build_the_usual_one_is_taken(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    no_gpu(monkeypatch)
    quick.manifest(python="==3.99", cpu_build=["toy-lib=={version}+cpu", "numpy"])
    lines: list[str] = []
    assert create(parse_spec("toy"), lines.append).version == "1.0"
    assert "pip finds no such build where it looks; taking the usual one" in lines


def test_the_smaller_build_is_neither_for_a_gpu_nor_for_a_version_that_names_its_build(
    quick: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick.manifest(python="==3.99", cpu_build=["toy-lib=={version}+cpu", "numpy"], cuda=["toy-lib-cuda=={version}"])
    no_gpu(monkeypatch)
    assert parse_spec("toy").preferred == ("toy-lib==1.0+cpu", "numpy")
    assert parse_spec("toy==1.0+cu126").preferred == ()
    assert parse_spec("toy", "cuda").preferred == ()
    no_gpu(monkeypatch, "a GPU")
    assert parse_spec("toy").preferred == ()


def test_every_version_of_pytorch_before_2_13_has_a_smaller_build(monkeypatch: pytest.MonkeyPatch) -> None:
    no_gpu(monkeypatch)
    preferred = {version: parse_spec(f"pytorch=={version}").preferred for version in ("1.0.0", "2.0.1", "2.12.0")}
    assert {version: lines[0] for version, lines in preferred.items()} == {
        version: f"torch=={version}+cpu" for version in preferred
    }
    assert parse_spec("pytorch").preferred == ()


def test_a_failed_install_names_its_reason(quick: World) -> None:
    with pytest.raises(UserError) as caught:
        create(parse_spec("toy==3.0"))
    assert "this version is not offered for Python" in caught.value.what
    assert "No matching distribution found for toy-lib==3.0" in caught.value.what
    assert str(quick.cache / "toy-3.0.log") in caught.value.hint
    assert quick.folders() == []


def test_an_unreachable_index_is_told_from_a_missing_version(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # the discard port: nobody listens
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(UserError, match="could not reach the package index") as caught:
        create(parse_spec("toy"))
    assert "rnnbench env use" in caught.value.hint
    assert quick.folders() == []


def test_what_nobody_asked_for_is_not_accepted(quick: World) -> None:
    spec = msgspec.structs.replace(parse_spec("toy==2.0"), requirements=("toy-lib", "numpy"))
    with pytest.raises(UserError, match=r"toy-2\.0 was created with version 1\.0"):
        create(spec)
    assert quick.folders() == []


def test_without_an_interpreter_nothing_is_started(world: World) -> None:
    world.manifest(python="==3.98")
    with pytest.raises(UserError, match=r"no Python ==3\.98"):
        create(parse_spec("toy"))
    assert world.folders() == []


def test_a_full_disk_and_a_read_only_cache_are_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, says in ((errno.ENOSPC, "No space left"), (errno.EACCES, "Permission denied")):

        def fail(*arguments: object, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(create_module, "_install", fail)
        with pytest.raises(UserError, match=says) as caught:
            create(parse_spec("toy"))
        assert "XDG_CACHE_HOME" in caught.value.hint
        assert world.folders() == []


def test_a_copied_environment_does_not_count(world: World) -> None:
    moved = world.cache / "toy-1.0"
    moved.mkdir(parents=True)
    marker = {
        "id": "toy-1.0", "framework": "toy", "version": "1.0", "python": sys.executable,
        "python_version": "3.11.0", "used": False, "folder": "/elsewhere/toy-1.0",
        "distributions": {}, "fingerprint": "",
    }  # fmt: skip
    (moved / "environment.json").write_text(json.dumps(marker))
    assert list_environments() == []
    assert incomplete_environments() == [moved]


@pytest.mark.parametrize(
    ("status", "output", "reason"),
    [
        (1, "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk"),
        (1, "ERROR: No matching distribution found for x\n", "no release for Python 3.11.7"),
        (1, "ERROR: ResolutionImpossible: for help visit", "contradict"),
        (-9, "", "killed by signal 9"),
        (2, "Usage: pip", "exit code 2"),
    ],
)
def test_reasons_are_distinguished(status: int, output: str, reason: str) -> None:
    assert reason in explain_failure(status, output, "toy-1.0", "3.11.7", "toy.log").what


def test_a_retry_that_succeeded_is_not_the_reason() -> None:
    output = (
        "WARNING: Retrying after connection broken by 'NewConnectionError'\n"
        "ERROR: Could not find a version that satisfies the requirement x==9 (from versions: 1.0, 2.0)\n"
        "ERROR: No matching distribution found for x==9\n"
    )
    assert "not offered" in explain_failure(1, output, "toy-9", "3.11.7", "toy.log").what
