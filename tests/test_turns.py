"""Turns: while one worker is timed, the others and their children are suspended, and lose none of their time limit."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import rnnbench
from rnnbench.domain.result import Launch
from rnnbench.errors import UserError
from rnnbench.launch import exclusive as module
from rnnbench.launch.exclusive import ExclusiveMachine
from rnnbench.launch.schedule import in_parallel
from rnnbench.method import make_method
from rnnbench_worker.protocol import TURN_VARIABLE, wait_for_turn

TINY = "ce-short[batch=3,hidden=4,steps=4]"

#: A worker whose child counts as fast as it can, in its own session, like the children of some compilers.
COUNTING = """
import subprocess, sys
child = "import itertools, sys\\nfor n in itertools.count(): open(sys.argv[1], 'w').write(str(n))"
subprocess.run([sys.executable, "-c", child, sys.argv[1]], start_new_session=True)
"""


@pytest.fixture(autouse=True)
def no_probe(monkeypatch):
    monkeypatch.setattr(module, "probe_seconds", lambda: 1.0)


@pytest.fixture
def counting(tmp_path):
    """Starts a worker that counts without a pause, and returns the file of its count."""
    started = []

    def start(turn):
        place = tmp_path / f"{len(started)}"
        process = subprocess.Popen([sys.executable, "-c", COUNTING, str(place)], start_new_session=True)
        started.append(process)
        turn.started(process.pid)
        until(lambda: place.exists() and place.read_text())
        return place

    yield start
    for process in started:
        for one in (*psutil.Process(process.pid).children(recursive=True), process):
            one.kill()
        process.wait()


def until(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def moves(place: Path, seconds=0.3):
    """Whether the file of a count is still written."""
    before = place.stat().st_mtime_ns
    time.sleep(seconds)
    return place.stat().st_mtime_ns != before


def test_all_others_and_their_children_are_suspended_while_one_is_timed(counting):
    machine = ExclusiveMachine(ahead=2)
    with machine.next() as busy:
        place = counting(busy)
        assert moves(place)
        with machine.next() as timed:
            timed.started(os.getpid())
            timed.warm()
            time.sleep(0.1)  # a write that had begun may finish
            assert not moves(place)
            assert busy.suspended_seconds() > 0.3
            assert timed.suspended_seconds() < busy.suspended_seconds()
        until(lambda: moves(place, 0.05))
        suspended = busy.suspended_seconds()
        time.sleep(0.05)
        assert busy.suspended_seconds() == suspended  # no longer counted once it is resumed


def test_with_one_at_a_time_a_worker_has_the_machine_from_its_start():
    turn = ExclusiveMachine().next()
    with turn:
        assert turn.descriptor is None
        assert turn.probe_before_s == 1.0
        turn.started(os.getpid())
        turn.warm()
    assert turn.probe_after_s == 1.0
    assert turn.suspended_seconds() == 0.0


def test_a_worker_that_could_not_be_started_releases_the_machine():
    machine = ExclusiveMachine(ahead=2)
    with pytest.raises(OSError, match="no such program"), machine.next():
        raise OSError("no such program")
    with machine.next() as another:
        another.started(os.getpid())
        another.warm()
    assert not machine.lock.locked()


def test_a_worker_waits_at_its_pipe_until_it_has_the_machine(monkeypatch):
    reading, writing = os.pipe()
    monkeypatch.setenv(TURN_VARIABLE, str(reading))
    os.write(writing, b"!")
    assert wait_for_turn()
    monkeypatch.delenv(TURN_VARIABLE)
    assert not wait_for_turn()


def run(systems, **method):
    plan = rnnbench.make_plan([f"sabotage/packed/{name}" for name in systems], [TINY], device="cpu")
    quick = {"effort": "quick", "sample_seconds": 0.05, "warm_seconds": 0.05, "verify": False}
    return rnnbench.run_plan(plan, "run", **quick, **method)


def test_a_run_ahead_measures_what_one_by_one_does_and_survives_broken_workers(sabotage):
    results = run(["honest", "nan", "crash", "hang", "silent-exit"], ahead=4, limit_seconds=6)
    launches = [record for record in results.contents.records if isinstance(record, Launch)]
    assert len(launches) == 10
    assert {launch.concurrent_workers for launch in launches} == {3}
    outcomes = {row.execution: row.status for row in results.rows}
    assert outcomes["hang"] == "timeout"
    assert outcomes["crash"] == outcomes["silent-exit"] == "failed"
    for launch in launches:
        if launch.case.system.endswith(("honest", "nan")):
            assert launch.outcome == "ok", launch.reason
            assert launch.probe_before_s is not None
            assert launch.probe_after_s is not None


def test_a_fixed_protocol_cannot_be_run_ahead():
    with pytest.raises(UserError, match="2019"):
        make_method(protocol="2019", ahead=2)


def test_zero_workers_at_once_are_refused():
    with pytest.raises(UserError, match="parallel workers"):
        make_method(ahead=0)


def test_an_error_in_one_of_several_ends_the_rest_and_is_raised():
    done = []

    def work(number):
        if number == 3:
            raise ValueError("three")
        time.sleep(0.05)
        return number

    with pytest.raises(ValueError, match="three"):
        in_parallel(work, range(100), 2, done.append)
    assert len(done) < 50
