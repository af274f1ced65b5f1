"""Finding interpreters, choosing one, and inspecting what is installed in it."""

import os
import sys
from pathlib import Path

import pytest

from environments_world import World
from rnnbench.environments import interpreters
from rnnbench.environments.environment import fingerprint, inspect_python
from rnnbench.environments.interpreters import Interpreter, choose_interpreter, find_interpreters
from rnnbench.errors import UserError

REAL = Path(os.path.realpath(sys.executable))
VERSION = ".".join(map(str, sys.version_info[:3]))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A machine on which only the running interpreter can be found."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.delenv("UV_PYTHON_INSTALL_DIR", raising=False)
    return World(tmp_path, monkeypatch)


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def pretend(path: Path, version: str) -> None:
    """A program that answers as an interpreter of this version would."""
    script(path, f'case "$*" in *ensurepip*) echo yes;; *) echo {version}; echo {path};; esac')


def test_links_to_one_file_count_once(world: World, tmp_path: Path) -> None:
    for place in ("bin/python3", "pyenv/versions/mine/bin/python", "data/uv/python/cpython/bin/python3.11"):
        link = tmp_path / place
        link.parent.mkdir(parents=True)
        link.symlink_to(sys.executable)
    assert find_interpreters() == [Interpreter(REAL, VERSION)]


def test_path_pyenv_and_uv_are_searched(world: World, tmp_path: Path) -> None:
    pretend(tmp_path / "bin" / "python3.8", "3.8.1")
    pretend(tmp_path / "bin" / "python3-config", "3.8.2")
    pretend(tmp_path / "pyenv" / "versions" / "3.6.15" / "bin" / "python", "3.6.15")
    pretend(tmp_path / "data" / "uv" / "python" / "cpython-3.9" / "bin" / "python3.9", "3.9.7")
    assert [each.version for each in find_interpreters()] == [VERSION, "3.8.1", "3.6.15", "3.9.7"]


def test_broken_and_hanging_ones_are_left_out(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "_TIMEOUT_SECONDS", 1.0)
    script(tmp_path / "bin" / "python3.7", "echo 'pyenv: python3.7: command not found' >&2; exit 127")
    script(tmp_path / "bin" / "python3.8", "exec sleep 30")
    (tmp_path / "bin" / "python3").symlink_to(tmp_path / "nowhere")
    (tmp_path / "bin" / "python3.9").write_text("not a program")
    assert [each.path for each in find_interpreters()] == [REAL]


def test_the_newest_that_fits_is_chosen(world: World, tmp_path: Path) -> None:
    for version in ("3.9.9", "3.9.10", "3.8.20"):
        pretend(tmp_path / "pyenv" / "versions" / version / "bin" / "python", version)
    assert choose_interpreter(">=3.8,<3.10").version == "3.9.10"


def test_the_running_one_is_preferred_where_it_fits(world: World, tmp_path: Path) -> None:
    pretend(tmp_path / "bin" / "python3.99", "3.99.0")
    assert choose_interpreter(">=3.8").path == REAL


def test_one_that_cannot_create_environments_is_skipped(world: World, tmp_path: Path) -> None:
    pretend(tmp_path / "bin" / "python3.8", "3.8.1")
    without_pip = tmp_path / "bin" / "python3.9"
    script(without_pip, f'case "$*" in *ensurepip*) exit 1;; *) echo 3.9.1; echo {without_pip};; esac')
    assert choose_interpreter(">=3.8,<3.10").version == "3.8.1"
    with pytest.raises(UserError, match=f"ensurepip is missing from {without_pip}"):
        choose_interpreter("==3.9")


def test_without_an_interpreter_it_says_what_to_do(world: World) -> None:
    with pytest.raises(UserError) as caught:
        choose_interpreter(">=3.6,<3.8")
    assert f"found: {VERSION}" in caught.value.what
    for command in ("pyenv install 3.7", "uv python install 3.7", "python3.7-venv", "rnnbench env use"):
        assert command in caught.value.hint


def test_the_reason_shown_in_a_runs_tables_names_a_command(world: World) -> None:
    with pytest.raises(UserError, match=r"^no interpreter: .*`pyenv install 3\.6` provides one") as caught:
        choose_interpreter("==3.6")
    assert "uv python" not in caught.value.hint  # uv cannot install one that old


def test_an_inspection_lists_what_is_installed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = world.brought(Toy_Lib="1.0+cpu")
    monkeypatch.setenv("PYTHONHOME", "/nonsense")
    inspection = inspect_python(folder / "bin" / "python")
    assert inspection.python_version == VERSION
    assert inspection.executable == str(folder / "bin" / "python")
    assert inspection.distributions == {"toy-lib": "1.0+cpu"}


def test_the_current_folder_is_not_part_of_an_environment(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = world.brought()
    (tmp_path / "here" / "stray-1.0.dist-info").mkdir(parents=True)
    (tmp_path / "here" / "stray-1.0.dist-info" / "METADATA").write_text("Name: stray\nVersion: 1.0\n")
    (tmp_path / "here" / "json.py").write_text("raise RuntimeError")
    monkeypatch.chdir(tmp_path / "here")
    python = folder / "bin" / "python"
    assert inspect_python(python, external=True).distributions == {}
    monkeypatch.setenv("PYTHONPATH", str(world.root / "other" / "lib"))
    assert inspect_python(python).distributions == {}


def test_pythonpath_applies_to_external_interpreters_only(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "modules" / "numpy-9.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: numpy\nVersion: 9.0\n")
    monkeypatch.setenv("PYTHONPATH", str(info.parent))
    python = world.brought() / "bin" / "python"
    assert inspect_python(python, external=True).distributions == {"numpy": "9.0"}
    assert inspect_python(python).distributions == {}


def test_the_fingerprint_follows_every_distribution(world: World) -> None:
    folder = world.brought(numpy="9.0")
    python = folder / "bin" / "python"
    before = fingerprint(inspect_python(python))
    assert fingerprint(inspect_python(python)) == before
    world.put(folder, "numpy", "9.1")
    changed = fingerprint(inspect_python(python))
    world.put(folder, "extra", "0.1")
    assert len({before, changed, fingerprint(inspect_python(python))}) == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo broken library >&2; exit 1", "broken library"),
        ("exit 3", "exit code 3"),
        ("echo hello", "does not answer like a Python"),
        ("""echo '{"version": "2.7.18", "executable": "x", "pairs": []}'""", "it is Python 2.7.18"),
    ],
)
def test_the_reason_why_a_program_is_not_an_interpreter(tmp_path: Path, text: str, reason: str) -> None:
    script(tmp_path / "python", text)
    with pytest.raises(UserError, match=reason):
        inspect_python(tmp_path / "python")
    with pytest.raises(UserError, match="No such file"):
        inspect_python(tmp_path / "absent")


OLD = [each for each in find_interpreters() if each.version.startswith(("3.6.", "3.7."))]


@pytest.mark.skipif(not OLD, reason="neither Python 3.6 nor 3.7 is on this machine")
@pytest.mark.parametrize("old", OLD, ids=lambda each: each.version)
def test_an_old_python_can_be_inspected(old: Interpreter) -> None:
    inspection = inspect_python(old.path)
    assert inspection.python_version == old.version
    assert "pip" in inspection.distributions
