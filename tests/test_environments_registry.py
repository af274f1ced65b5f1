"""External interpreters; finding, removing and checking environments; and the commands that do it."""

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from environments_world import World
from rnnbench.cli.env import app
from rnnbench.domain.run import Environment
from rnnbench.environments import registry
from rnnbench.environments.cache import SPEC_FILE, lock_of, write_marker
from rnnbench.environments.doctor import Diagnosis, diagnose
from rnnbench.environments.environment import Inspection, describe_environment, inspect_python
from rnnbench.environments.external import external_interpreters, use_interpreter
from rnnbench.environments.registry import incomplete_environments, list_environments, remove, resolve
from rnnbench.environments.spec import parse_spec
from rnnbench.errors import UserError
from rnnbench.files import locked
from rnnbench.manifests import manifests


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def created(world: World, version: str = "1.0") -> Environment:
    """A complete environment in the cache, made without pip."""
    spec = parse_spec(f"toy=={version}")
    folder = world.brought(f"cache/rnnbench/environments/{spec.id}", toy_lib=version, numpy="9.0")
    (folder / SPEC_FILE).write_bytes(msgspec.json.encode(spec))
    python = folder / "bin" / "python"
    inspection = inspect_python(python)
    environment = describe_environment(manifests()["toy"], python, inspection, id=spec.id, folder=str(folder))
    write_marker(environment)
    return environment


def found(level: str) -> list[Diagnosis]:
    return [finding for finding in diagnose() if finding.level == level]


def test_an_interpreter_or_its_folder_can_be_used(world: World) -> None:
    folder = world.brought(toy_lib="1.4+cpu", numpy="9.0")
    environment = use_interpreter("toy", folder)
    assert environment.id == "toy-1.4+cpu-used"
    assert environment.python == str(folder / "bin" / "python")
    assert (environment.external, environment.folder) == (True, "")
    assert use_interpreter("toy==1.4", folder / "bin" / "python") == environment
    assert external_interpreters() == {"toy": environment}
    assert list_environments() == [environment]


def test_an_interpreter_without_the_framework_is_refused(world: World) -> None:
    with pytest.raises(UserError, match="lacks toy-lib and numpy"):
        use_interpreter("toy", world.brought("empty"))
    folder = world.brought("half", toy_lib="1.0")
    with pytest.raises(UserError, match="lacks numpy") as caught:
        use_interpreter("toy", folder)
    assert "pip install numpy" in caught.value.hint
    with pytest.raises(UserError, match="there is no interpreter"):
        use_interpreter("toy", world.root / "absent")
    with pytest.raises(UserError, match="nearest: toy"):
        use_interpreter("tory", folder)
    assert external_interpreters() == {}


def test_a_framework_of_two_distributions_has_the_version_of_the_one_installed(world: World) -> None:
    manifest = msgspec.structs.replace(manifests()["toy"], package="toy-lib|toy-lib-gpu")

    def version_with(**distributions: str) -> str:
        found = {name.replace("_", "-"): version for name, version in distributions.items()}
        inspection = Inspection("3.11.0", "python", {"numpy": "9.0", **found})
        return describe_environment(manifest, Path("python"), inspection).version

    assert (version_with(toy_lib="1.0"), version_with(toy_lib_gpu="2.0")) == ("1.0", "2.0")
    with pytest.raises(UserError, match="it lacks toy-lib"):
        version_with()


def test_the_version_named_must_be_the_version_found(world: World) -> None:
    folder = world.brought(toy_lib="1.4", numpy="9.0")
    with pytest.raises(UserError, match=r"has Toy 1\.4, not 1\.5"):
        use_interpreter("toy==1.5", folder)
    assert external_interpreters() == {}


def test_an_external_interpreter_is_preferred(world: World) -> None:
    ours = created(world)
    own = use_interpreter("toy", world.brought(toy_lib="1.4+cpu", numpy="9.0"))
    assert resolve(parse_spec("toy"), create_missing=False) == own
    assert resolve(parse_spec("toy==1.4"), create_missing=False) == own
    remove(own.id)
    assert resolve(parse_spec("toy"), create_missing=False) == ours


def test_an_external_interpreter_does_not_run_another_version(world: World) -> None:
    use_interpreter("toy", world.brought(toy_lib="1.4", numpy="9.0"))
    with pytest.raises(UserError, match=r"toy-1\.5 does not exist") as caught:
        resolve(parse_spec("toy==1.5"), create_missing=False)
    assert "rnnbench env create toy==1.5" in caught.value.hint


def test_an_external_interpreter_is_inspected_again(world: World) -> None:
    folder = world.brought(toy_lib="1.4", numpy="9.0")
    before = use_interpreter("toy", folder)
    world.put(folder, "numpy", "9.1")
    now = resolve(parse_spec("toy"), create_missing=False)
    assert now.distributions["numpy"] == "9.1"
    assert now.fingerprint != before.fingerprint
    (finding,) = [each for each in found("warning") if "numpy" in each.what]
    assert "numpy 9.0 → 9.1" in finding.what
    (folder / "bin" / "python").unlink()
    with pytest.raises(UserError, match="no longer works") as caught:
        resolve(parse_spec("toy"), create_missing=True)
    assert "rnnbench env remove toy-1.4-used" in caught.value.hint


def test_what_is_missing_is_created_only_when_asked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="run `rnnbench env create toy`"):
        resolve(parse_spec("toy"), create_missing=False)
    monkeypatch.setattr(registry, "create", lambda spec, report: created(world))
    environment = resolve(parse_spec("toy"), create_missing=True)
    assert resolve(parse_spec("toy"), create_missing=False) == environment
    assert [each.level for each in diagnose() if "toy-1.0: Python" in each.what] == ["ok"]


def test_removing_an_external_one_leaves_the_interpreter(world: World) -> None:
    folder = world.brought(toy_lib="1.4", numpy="9.0")
    use_interpreter("toy", folder)
    assert "untouched" in remove("toy")
    assert (folder / "bin" / "python").exists()
    assert list_environments() == []


def test_removing_a_created_one_deletes_it(world: World) -> None:
    created(world)
    created(world, "2.0")
    (world.cache / "toy-2.0.log").touch()
    with pytest.raises(UserError, match=r"toy-1\.0, toy-2\.0"):
        remove("toy")
    with pytest.raises(UserError, match=r"nearest: toy-2\.0"):
        remove("toy-2.1")
    assert "deleted" in remove("toy==2.0")
    assert world.folders() == ["toy-1.0"]
    assert not (world.cache / "toy-2.0.log").exists()


def test_an_environment_being_created_is_neither_incomplete_nor_removable(world: World) -> None:
    (world.cache / "toy-1.0").mkdir(parents=True)
    assert incomplete_environments() == [world.cache / "toy-1.0"]
    with locked(lock_of("toy-1.0")):
        assert incomplete_environments() == []
    environment = created(world)
    with locked(lock_of("toy-1.0")), pytest.raises(UserError, match="being created"):
        remove(environment.id)
    assert list_environments() == [environment]


def test_a_damaged_list_of_external_interpreters_is_named(world: World) -> None:
    file = world.root / "config" / "rnnbench" / "environments.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"toy": ')
    with pytest.raises(UserError, match=str(file)):
        external_interpreters()
    assert any(str(file) in finding.what for finding in found("problem"))


def test_the_doctor_finds_incomplete_environments_and_they_can_be_removed(world: World) -> None:
    incomplete = world.cache / "toy-1.0"
    incomplete.mkdir(parents=True)
    (finding,) = [each for each in found("warning") if "incomplete" in each.what]
    assert "rnnbench env remove toy-1.0" in finding.hint
    assert "deleted" in remove("toy-1.0")
    assert not incomplete.exists()


def test_the_doctor_finds_what_vanished_and_what_changed(world: World) -> None:
    environment = created(world)
    own = world.brought(toy_lib="1.4", numpy="9.0")
    use_interpreter("toy", own)
    assert found("problem") == []
    world.put(Path(environment.folder), "numpy", "9.1")
    (own / "bin" / "python").unlink()
    changed, vanished = found("problem")
    assert "numpy 9.0 → 9.1" in changed.what
    assert "toy-1.4-used: the external interpreter for toy no longer works" in vanished.what
    (Path(environment.folder) / "bin" / "python").unlink()
    assert any("toy-1.0: cannot run" in finding.what for finding in found("problem"))


def test_the_doctor_looks_at_manifests_and_tools(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    created(world)
    world.manifest(python="==3.98", tools=["no-such-compiler|nor-this"], constraints=["numpy<10"])
    said = [finding.what for finding in found("warning")]
    assert any("Toy: no interpreter: no Python ==3.98" in what for what in said)
    assert any("no-such-compiler or nor-this is not on PATH" in what for what in said)
    assert any("toy-1.0 was created from another manifest" in what for what in said)


def test_the_commands(world: World) -> None:
    run = CliRunner().invoke
    assert "rnnbench env create pytorch" in run(app, ["list"]).stdout
    folder = world.brought(toy_lib="1.4", numpy="9.0")
    assert "toy-1.4-used" in run(app, ["use", "toy", str(folder)]).stdout
    heading, _, row = run(app, ["list"]).stdout.splitlines()
    assert heading.split() == ["environment", "version", "Python", "interpreter"]
    assert row.split()[0] == "toy-1.4-used"
    (entry,) = json.loads(run(app, ["list", "--json"]).stdout)
    assert entry["distributions"] == {"numpy": "9.0", "toy-lib": "1.4"}

    assert run(app, ["doctor"]).exit_code == 0
    (folder / "bin" / "python").unlink()
    answer = run(app, ["doctor", "--json"])
    assert answer.exit_code == 1
    assert "problem" in {finding["level"] for finding in json.loads(answer.stdout)}
    assert "untouched" in run(app, ["remove", "toy-1.4-used"]).stdout
    assert isinstance(run(app, ["remove", "toy"]).exception, UserError)
    # The second name is wrong, so the first creation is not started.
    assert isinstance(run(app, ["create", "toy", "tory"]).exception, UserError)
    assert world.folders() == []


@pytest.mark.parametrize("command", ["list", "create", "remove", "use", "doctor"])
def test_every_command_shows_an_example(command: str) -> None:
    assert f"  rnnbench env {command}" in CliRunner().invoke(app, [command, "--help"]).stdout
