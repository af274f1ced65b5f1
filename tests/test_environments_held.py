"""An environment in use is never removed, and one that is reached through a link is the same one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from environments_world import World
from rnnbench.domain.run import Environment
from rnnbench.environments.cache import folder_of, read_marker
from rnnbench.environments.create import create
from rnnbench.environments.holding import held, is_known
from rnnbench.environments.registry import find, list_environments, remove
from rnnbench.environments.spec import parse_spec
from rnnbench.errors import UserError
from rnnbench.manifests import read_manifest


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def put_environment(folder: Path, **fields: object) -> Environment:
    """A complete environment, as far as the marker says."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    marker = {
        "id": folder.name, "framework": "toy", "version": "1.0", "python": str(folder / "bin" / "python"),
        "python_version": "3.11.0", "external": False, "folder": str(folder), "distributions": {}, "fingerprint": "",
        **fields,
    }  # fmt: skip
    (folder / "environment.json").write_text(json.dumps(marker))
    found = read_marker(folder)
    assert found is not None
    return found


def test_an_environment_in_use_is_neither_removed_nor_created_again(world: World) -> None:
    environment = put_environment(world.cache / "toy-1.0")
    with held([environment]), held([environment]):  # two runs may use it at once
        for attempt in (lambda: remove("toy"), lambda: create(parse_spec("toy"), fresh=True)):
            with pytest.raises(UserError, match="in use"):
                attempt()
        assert (world.cache / "toy-1.0" / "bin" / "python").exists()
        assert find(parse_spec("toy")) == environment
    assert "deleted" in remove("toy")
    assert world.folders() == []


def test_one_that_seems_moved_is_not_deleted_while_it_is_in_use(world: World) -> None:
    environment = put_environment(world.cache / "toy-1.0")
    with held([environment]):
        marker = world.cache / "toy-1.0" / "environment.json"
        marker.write_text(marker.read_text().replace(str(world.cache), "/elsewhere"))
        assert read_marker(world.cache / "toy-1.0") is None
        with pytest.raises(UserError, match="in use"):
            create(parse_spec("toy"))
    assert world.folders() == ["toy-1.0"]


def test_a_process_that_ends_holds_nothing(world: World) -> None:
    environment = put_environment(world.cache / "toy-1.0")
    marker = f"{environment.folder}/environment.json"
    code = f"import fcntl, os; fcntl.flock(os.open({marker!r}, 0), fcntl.LOCK_SH); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    assert "deleted" in remove("toy")


@pytest.mark.parametrize("what", ["the cache", "the environment"])
def test_one_that_is_reached_through_a_link_is_the_same_one(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str
) -> None:
    environment = put_environment(world.cache / "toy-1.0")
    other = tmp_path / "other"
    if what == "the cache":
        other.symlink_to(tmp_path / "cache")
    else:
        (other / "rnnbench" / "environments").mkdir(parents=True)
        (other / "rnnbench" / "environments" / "toy-1.0").symlink_to(world.cache / "toy-1.0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(other))
    spec = parse_spec("toy")
    assert find(spec) == environment
    assert create(spec) == environment  # not taken for moved, deleted and built again
    with held([environment]), pytest.raises(UserError, match="in use"):
        remove("toy")
    through_link = str(other / "rnnbench" / "environments" / "toy-1.0" / "bin" / "python")
    elsewhere = Environment(**{**as_fields(environment), "python": through_link})
    assert is_known(elsewhere, list_environments())
    assert os.path.exists(environment.python)


def as_fields(environment: Environment) -> dict[str, object]:
    return {name: getattr(environment, name) for name in environment.__struct_fields__}


def test_a_replacement_that_fails_leaves_the_environment(world: World) -> None:
    environment = put_environment(world.cache / "toy-1.0")
    (world.cache / "toy-1.0" / "mine").write_text("kept")
    world.manifest(cpu=["no-such-distribution"])
    with pytest.raises(UserError):
        create(parse_spec("toy"), fresh=True)
    assert find(parse_spec("toy")) == environment
    assert (world.cache / "toy-1.0" / "mine").read_text() == "kept"
    assert world.folders() == ["toy-1.0"]


def test_what_a_killed_replacement_put_aside_comes_back(world: World) -> None:
    environment = put_environment(world.cache / "toy-1.0")
    os.rename(world.cache / "toy-1.0", world.cache / ".toy-1.0.aside")
    (world.cache / "toy-1.0").mkdir()  # half of the new one
    world.manifest(cpu=["no-such-distribution"])
    with pytest.raises(UserError):
        create(parse_spec("toy"))
    assert find(parse_spec("toy")) == environment


@pytest.mark.parametrize("name", ["..", "../../x", "/etc", "a/b", "", ".hidden", "x" * 300, "a\nb", "a\0b", "-rf"])
def test_no_name_is_a_path(world: World, tmp_path: Path, name: str) -> None:
    """A version of `/../..` made the driver delete a folder."""
    with pytest.raises(UserError):
        folder_of(name)
    for line in ('framework = "toy"', 'version = "1.0"'):
        folder = world.root / "systems" / "toy"
        text = (folder / "manifest.toml").read_text()
        escaped = json.dumps(name)
        (folder / "manifest.toml").write_text(text.replace(line, f"{line.partition('=')[0]}= {escaped}"))
        with pytest.raises(UserError, match=r"manifest\.toml"):
            read_manifest(folder)
        (folder / "manifest.toml").write_text(text)


def test_a_marker_cannot_name_another_folder_to_delete(world: World) -> None:
    put_environment(world.cache / "toy-1.0")
    marker = world.cache / "toy-1.0" / "environment.json"
    marker.write_text(marker.read_text().replace('"id": "toy-1.0"', '"id": "../../wheels"'))
    with pytest.raises(UserError):
        remove("../../wheels")
    assert world.wheels.is_dir()
