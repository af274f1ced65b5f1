"""Several environments created in parallel, failures and interruptions among them, and outdated environments."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rnnbench
from environments_world import World
from rnnbench import manifests
from rnnbench.cli.env import app
from rnnbench.environments.cache import how_to_renew, lock_of, outdated
from rnnbench.environments.create import MAX_PARALLEL, create, make_all
from rnnbench.environments.doctor import diagnose
from rnnbench.environments.interpreters import no_interpreter
from rnnbench.environments.pip import run_logged
from rnnbench.environments.registry import failed_creations, list_environments, resolve
from rnnbench.environments.spec import parse_spec
from rnnbench.errors import UserError
from rnnbench.files import locked
from rnnbench.launch.launcher import start_failure
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from test_environments_create import pip

__all__ = ["pip"]  # a fixture


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pip: Path) -> World:
    world = World(tmp_path, monkeypatch)
    world.hurry(pip)
    world.wheel("toy-lib", "2.0")
    return world


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Restore the handling of Ctrl-C, which a process started in the background ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_one_that_fails_does_not_stop_the_others(quick: World) -> None:
    lines: list[str] = []
    specs = [parse_spec(f"toy=={version}") for version in ("1.0", "3.0", "2.0")]
    first, lost, second = make_all(specs, create, lines.append)
    assert [each.id for each in list_environments()] == ["toy-1.0", "toy-2.0"]
    assert not isinstance(first, UserError)
    assert not isinstance(second, UserError)
    assert isinstance(lost, UserError)
    assert "this version is not offered" in lost.what
    # Every line names its environment, in whatever order the lines come.
    assert {line.split(":")[0] for line in lines} == {"toy-1.0", "toy-2.0", "toy-3.0"}
    assert any(line.startswith("toy-3.0: cannot create toy-3.0: this version is not offered") for line in lines)
    assert failed_creations() == ["toy-3.0"]
    (finding,) = [each for each in diagnose() if "toy-3.0" in each.what]
    assert (finding.level, "toy-3.0.log" in finding.hint) == ("warning", True)


def test_they_are_made_at_the_same_time(quick: World) -> None:
    """Each waits until the other has started: one after the other, they would wait for ever."""
    meeting = threading.Barrier(2, timeout=20)

    def make(spec, report):  # type: ignore[no-untyped-def]
        meeting.wait()
        return spec.id

    assert make_all([parse_spec("toy==1.0"), parse_spec("toy==2.0")], make) == ["toy-1.0", "toy-2.0"]


def test_an_interruption_ends_all_of_them(quick: World, tmp_path: Path, interruptible: None) -> None:
    started = []

    def make(spec, report):  # type: ignore[no-untyped-def]
        with (tmp_path / f"{spec.id}.txt").open("w") as log, locked(lock_of(spec.id), lambda: None) as lock:
            report("sleeping")
            started.append(spec.id)
            if len(started) == MAX_PARALLEL:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            run_logged(["sleep", "60"], log, report, lock)
            report("and again")  # after an interruption this raises
            run_logged(["sleep", "60"], log, report, lock)

    quick.cache.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        make_all([parse_spec(f"toy=={number}.0") for number in range(1, 7)], make)
    assert time.monotonic() - begun < 30  # none slept to its end, and no further creation started
    assert len(started) == MAX_PARALLEL


def test_waiting_for_another_process_can_be_interrupted(quick: World, interruptible: None) -> None:
    quick.cache.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []

    def hear(line: str) -> None:
        lines.append(line)
        if "waiting" in line:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    with locked(lock_of("toy-1.0")), pytest.raises(KeyboardInterrupt):
        make_all([parse_spec("toy==1.0"), parse_spec("toy==3.0")], create, hear)
    assert lines.count("toy-1.0: waiting: toy-1.0 is being created") == 1


def test_the_command_makes_what_it_can_and_ends_with_the_reason(quick: World) -> None:
    answer = CliRunner().invoke(app, ["create", "toy==1.0", "toy==3.0"])
    assert isinstance(answer.exception, UserError)
    assert "cannot create toy-3.0" in answer.exception.what
    assert str(quick.cache / "toy-1.0") in answer.stdout
    answer = CliRunner().invoke(app, ["create", "toy==3.0", "toy==4.0"])
    assert isinstance(answer.exception, UserError)
    assert answer.exception.what == "2 environments could not be created"


# --- outdated environments ------------------------------------------------------------------------------


def test_a_changed_manifest_is_noticed_and_fresh_creates_it_again(quick: World) -> None:
    environment = create(parse_spec("toy"))
    assert outdated(environment) == ""
    quick.wheel("numpy", "9.1")
    quick.manifest(python="==3.99", constraints=["numpy==9.1"])
    assert outdated(environment) == "nothing → numpy==9.1"
    lines: list[str] = []
    assert create(parse_spec("toy"), lines.append) == environment
    exists, warning = lines
    assert exists == "toy-1.0 exists already"
    assert "other requirements (nothing → numpy==9.1); `rnnbench env create --fresh toy==1.0`" in warning
    noted: list[str] = []
    assert resolve(parse_spec("toy"), create_missing=True, report=noted.append) == environment
    assert "warning: toy-1.0 was created from other requirements" in noted[0]
    (finding,) = [each for each in diagnose() if "another manifest" in each.what]
    assert "numpy==9.1" in finding.what
    assert finding.hint == how_to_renew(environment)

    answer = CliRunner().invoke(app, ["create", "--fresh", "toy"])
    assert answer.exit_code == 0
    (renewed,) = list_environments()
    assert renewed.distributions["numpy"] == "9.1"
    assert outdated(renewed) == ""


def test_what_has_changed_is_named_pin_by_pin(quick: World) -> None:
    quick.manifest(python="==3.99", cpu=["toy-lib=={version}", "numpy==9.0"], tooling=["pip"])
    environment = create(parse_spec("toy"))
    quick.manifest(python="==3.98", cpu=["Toy-Lib=={version}", "numpy>=9.0,<10"], tooling=[])
    assert outdated(environment) == (
        "Python ==3.99 → Python ==3.98, numpy==9.0 → numpy>=9.0,<10, pip → nothing"
    )  # fmt: skip
    (Path(environment.folder) / "spec.json").write_text("{")
    assert outdated(environment) == "the requirements it was created from are unknown"


def test_fresh_deletes_nothing_without_an_interpreter(quick: World) -> None:
    environment = create(parse_spec("toy"))
    quick.manifest(python="==3.98")
    with pytest.raises(UserError, match=r"no Python ==3\.98"):
        create(parse_spec("toy"), fresh=True)
    assert list_environments() == [environment]


# --- missing interpreters -------------------------------------------------------------------------------


def test_a_missing_interpreter_is_one_line_with_the_command_that_provides_it(quick: World) -> None:
    assert no_interpreter(f"=={'.'.join(map(str, sys.version_info[:2]))}") == ""
    reason = no_interpreter("==3.98")
    assert reason.startswith("no interpreter: no Python ==3.98 here can create an environment")
    assert "`pyenv install 3.98` provides one" in reason
    assert "\n" not in reason


def test_the_doctor_checks_older_versions_and_sums_up_sizes(quick: World) -> None:
    create(parse_spec("toy"))
    manifest = quick.root / "systems" / "toy" / "manifest.toml"
    older = '[[requirements]]\nversions = "<0.5"\npython = "==3.97"\ncpu = ["toy-lib"]\n'
    text = manifest.read_text().replace('versions = ""', 'versions = ">=0.5"')
    manifest.write_text(text.replace("[[system]]", f"{older}\n[[system]]"))
    manifests._read_all.cache_clear()
    found = {(each.level, each.what.partition(":")[0]) for each in diagnose()}
    assert ("warning", "Toy <0.5") in found
    assert ("ok", "1 created environment") in found


def test_the_doctor_finds_what_does_not_start(quick: World) -> None:
    create(parse_spec("toy"))  # its wheels are empty
    assert not any(each.level == "problem" for each in diagnose())
    (problem,) = [each for each in diagnose(start_failure) if each.level == "problem"]
    assert problem.what.startswith("toy-1.0 does not start: failed during import: ")
    assert "numpy" in problem.what


def test_the_doctor_finds_no_problem_in_what_starts(sabotage: Path) -> None:
    assert not any(each.level == "problem" for each in diagnose(start_failure))


# --- in a run -------------------------------------------------------------------------------------------


def test_a_run_continues_without_an_environment_that_cannot_be_created(quick: World) -> None:
    plan = rnnbench.make_plan(["toy/fine/eager"], ["ce-short"], versions=["1.0", "3.0"], device="cpu")
    ready = prepare(plan, Listener())
    assert list(ready.environments) == ["toy-1.0"]
    assert {case.environment for case in ready.cases} == {"toy-1.0"}
    (reason,) = {left.reason for left in ready.left_out}
    assert reason == "cannot create toy-3.0: this version is not offered for Python 3.99.0"
    with pytest.raises(UserError, match=r"cannot create toy-3\.0"):
        prepare(rnnbench.make_plan(["toy/fine/eager"], ["ce-short"], versions=["3.0"], device="cpu"), Listener())
