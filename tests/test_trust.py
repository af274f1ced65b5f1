"""A run folder from elsewhere names interpreters; none is started that the user did not choose."""

import json
import os
import stat

import pytest

TINY = "ce-short[batch=3,hidden=4,steps=4]"


@pytest.fixture
def foreign(sabotage, call):
    """A run whose interpreter is a program that leaves a trace when it is started."""
    begun = call("run", "sabotage/packed/honest", "-w", TINY, "--phase", "forward", "--effort", "quick", "--out", "run")
    assert begun.code == 0
    program = sabotage / "evil"
    program.write_text(f"#!/bin/sh\ntouch {sabotage}/started\nexit 1\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    whole = json.loads((sabotage / "run" / "run.json").read_text())
    for environment in whole["environments"].values():
        environment["python"] = str(program)
    (sabotage / "run" / "run.json").write_text(json.dumps(whole))
    return sabotage


@pytest.mark.parametrize("command", ["run", "profile"])
def test_an_interpreter_that_nobody_chose_is_not_started(foreign, call, command):
    answer = call(command, "--resume", "run")
    assert answer.code == 2
    assert "evil" in answer.err
    assert "--trust" in answer.err
    assert not (foreign / "started").exists()


@pytest.mark.parametrize("command", ["run", "profile"])
def test_trust_starts_it(foreign, call, command):
    answer = call(command, "--resume", "run", "--trust")
    assert answer.code == 2
    assert "cannot run" in answer.err
    assert (foreign / "started").exists()


def test_on_a_terminal_the_user_is_asked(foreign, call, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *given, **named: False)
    assert "--trust" in call("run", "--resume", "run").err
    assert not (foreign / "started").exists()
    monkeypatch.setattr("typer.confirm", lambda *given, **named: True)
    call("run", "--resume", "run")
    assert (foreign / "started").exists()


def test_trust_needs_a_run(call):
    assert "--trust needs --resume" in call("run", "--trust").err


def test_an_own_run_is_resumed_without_a_question(sabotage, call):
    for options in (("sabotage/packed/honest", "-w", TINY, "--effort", "quick", "--out", "run"), ("--resume", "run")):
        assert call("run", *options).code == 0
    assert os.path.exists("run")
