"""A damaged run folder gives a clear error or a reported line: never a traceback, and never a wait without end."""

import shutil
import signal

import pytest

from damage import AIMED, HARMLESS, random_damage
from made_up import WHEN
from report_runs import cpu_run
from rnnbench.domain.profile import Operator, Profile, Reshape, Retrace
from rnnbench.errors import UserError
from rnnbench.session import Session
from rnnbench.store import append, create_folder

RANDOM = 500
PER_TEST = 50
LONGEST_S = 60  # only so that a command that hangs ends


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    contents = cpu_run()
    create_folder(folder, contents.run)
    first = contents.run.cases[0]
    profile = Profile(
        case=first, started=WHEN, outcome="ok", batches=3, wall_s=1.0, host_s=0.5, profiled_s=1.5, operators=10.0,
        operators_s=0.6, kinds={"matrix products": 0.6}, counts={"matrix products": 10.0},
        top=(Operator("aten::mm", 10.0, 0.6),),
    )  # fmt: skip
    reshape = Reshape(change="batch", outcome="kept", calls=(1.0, 0.5), built=(0, 0))
    retrace = Retrace(case=first, started=WHEN, outcome="ok", first_call_s=1.0, reshapes=(reshape,))
    for record in (*contents.records, profile, retrace):
        append(folder, record)
    return folder


@pytest.fixture
def commands(whole, call, tmp_path, monkeypatch):
    """Every command that reads a run, on a damaged copy of one. Answers with their exit codes and what they said."""

    def reached(session):
        raise UserError("workers would start now")

    def too_long(number, frame):
        raise AssertionError("it hangs")

    monkeypatch.setattr(Session, "verify", reached)
    monkeypatch.setattr("rnnbench.session.require_same_environments", lambda run: None)
    before = signal.signal(signal.SIGALRM, too_long)
    folder = tmp_path / "damaged"
    given = {
        "show": ("show", str(folder)),
        "check": ("check", str(folder)),
        "explain": ("explain", str(folder)),
        "compare": ("compare", str(whole), str(folder)),
        "history": ("history", str(folder)),
        "resume": ("run", "--resume", str(folder)),
        "report": ("report", str(folder), "--out", str(tmp_path / "report"), "--format", "md,csv,json"),
    }

    def run(damage, names=tuple(given)):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        damage(folder)
        answers = {}
        for name in names:
            signal.alarm(LONGEST_S)
            try:
                answers[name] = call(*given[name])
            finally:
                signal.alarm(0)
        return answers

    yield run
    signal.signal(signal.SIGALRM, before)


def test_the_whole_run_is_whole(commands):
    answers = commands(lambda folder: None)
    assert {name: answer.code for name, answer in answers.items()} == {
        "show": 0, "check": 1, "explain": 0, "compare": 0, "history": 0, "resume": 2, "report": 0,
    }  # fmt: skip
    assert "skipped" not in "".join(answer.err for answer in answers.values())


@pytest.mark.parametrize("what", AIMED)
def test_aimed_damage_is_reported_by_every_command(commands, what):
    for name, answer in commands(AIMED[what]).items():
        said = answer.out + answer.err
        assert "Traceback" not in said
        assert answer.code in (0, 1, 2)
        if answer.code == 2:
            assert "rnnbench: " in answer.err
        else:
            assert "line" in said, f"{name} says nothing of it"


@pytest.mark.parametrize("what", HARMLESS)
def test_what_does_no_harm_stops_nothing(commands, what):
    for name, answer in commands(HARMLESS[what]).items():
        assert answer.code == (2 if name == "resume" else answer.code)
        assert answer.code in (0, 1, 2)
        assert "\x1b" not in answer.out + answer.err


@pytest.mark.parametrize("first", range(0, RANDOM, PER_TEST))
def test_random_damage_never_ends_in_a_traceback(commands, first):
    others = ("check", "explain", "compare", "history", "resume", "report")
    for number in range(first, first + PER_TEST):
        for name, answer in commands(random_damage(number), ("show", others[number % len(others)])).items():
            assert answer.code in (0, 1, 2), f"{name} after damage {number}: {answer.err}"
            assert answer.code != 2 or "rnnbench: " in answer.err
