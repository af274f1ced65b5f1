"""Turns: while one worker is timed, the others and their children are suspended, and lose none of their time limit."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import rnnbench
from fake_workers import (
    BUILT,
    DONE,
    FIRST,
    HELLO,
    MEMORY,
    SAMPLES,
    SAMPLING,
    WARM,
    await_turn,
    job,
    say,
    until,
    worker,
)  # fmt: skip
from rnnbench.domain.result import Launch
from rnnbench.errors import UserError
from rnnbench.launch import exclusive as module
from rnnbench.launch.exclusive import ExclusiveMachine
from rnnbench.launch.process import CREW, WorkerProcess
from rnnbench.launch.schedule import in_parallel
from rnnbench.launch.supervisor import Process, descendants
from rnnbench.launch.worker import run_worker
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
    monkeypatch.setattr(module, "probe_seconds", lambda cpus: 1.0)


class Fake:
    """A process that notes what is done to it."""

    def __init__(self):
        self.told = []

    def suspend(self):
        self.told.append("suspend")

    def resume(self):
        self.told.append("resume")


@pytest.fixture
def counting(tmp_path):
    """Starts a worker that counts without a pause, and returns the file of its count."""
    started = []

    def start(turn):
        place = tmp_path / f"{len(started)}"
        reading, writing = os.pipe()
        process = WorkerProcess([sys.executable, "-c", COUNTING, str(place)], tmp_path, os.environ, [writing])
        os.close(reading)
        os.close(writing)
        started.append(process)
        turn.started(process)
        until(lambda: place.exists() and place.read_text())
        return place

    yield start
    for process in started:
        process.end()
        process.wait()
        process.close()
        process.stdout.close()


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
            timed.started(Fake())
            timed.warm()
            assert not moves(place)  # all had stopped when `warm` returned
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
        turn.started(Fake())
        turn.warm()
    assert turn.probe_after_s == 1.0
    assert turn.suspended_seconds() == 0.0


def test_a_worker_that_is_not_probed_afterwards_ends_while_others_go_on():
    machine = ExclusiveMachine(ahead=2)
    with machine.next() as waiting:
        other = Fake()
        waiting.started(other)
        with machine.next(probes=False) as timed:
            timed.started(Fake())
            timed.warm()
            assert other.told == ["suspend"]
            timed.sampled()
            assert other.told == ["suspend", "resume"]
            waiting.warm()  # it has the machine although the first one has not ended
        assert (timed.probe_before_s, timed.probe_after_s) == (None, None)
        with machine._crew.lock:
            assert machine._holder is waiting  # the end of the first one took nothing from it
    with machine.next() as probed:  # but one that is probed keeps the machine
        probed.started(Fake())
        probed.warm()
        probed.sampled()
        with machine._crew.lock:
            assert machine._holder is probed


def test_a_worker_that_could_not_be_started_releases_the_machine():
    machine = ExclusiveMachine(ahead=2)
    with pytest.raises(OSError, match="no such program"), machine.next():
        raise OSError("no such program")
    with machine.next() as another:
        another.started(Fake())
        another.warm()
    with machine.next():
        pass


def test_time_that_is_lost_for_two_reasons_at_once_counts_once():
    """A worker that waits for the machine is suspended as well, by the one that has it."""
    machine = ExclusiveMachine(ahead=2)
    began = time.monotonic()
    with machine.next() as waiting:
        waiting.started(Fake())
        with machine.next() as timed:
            timed.started(Fake())
            timed.warm()
            thread = threading.Thread(target=waiting.warm)
            thread.start()
            time.sleep(0.3)
            assert 0.25 < waiting.suspended_seconds() <= time.monotonic() - began
        thread.join(20)
        assert waiting.suspended_seconds() <= time.monotonic() - began
        assert waiting.probe_before_s == 1.0


def test_a_worker_that_has_ended_is_never_signalled():
    machine = ExclusiveMachine(ahead=2)
    with machine.next() as timed:
        timed.started(Fake())
        ended = Fake()
        with machine.next() as short:
            short.started(ended)
        timed.warm()
    assert ended.told == []


def test_those_that_were_suspended_are_resumed_once():
    machine = ExclusiveMachine(ahead=2)
    other = Fake()
    with machine.next() as first:
        first.started(other)
        with machine.next() as timed:
            timed.started(Fake())
            timed.warm()
            timed.warm()  # it has the machine already: neither a second wait nor a second grant
    assert other.told == ["suspend", "resume"]


def test_a_signal_reaches_no_process_that_has_only_the_number_of_the_one_meant():
    sleeping = subprocess.Popen(["sleep", "600"])
    try:
        (meant,) = [one for one in descendants() if one.pid == sleeping.pid]
        Process(meant.pid, meant.parent, meant.state, "1").send(signal.SIGKILL)
        time.sleep(0.05)
        assert sleeping.poll() is None
        meant.send(signal.SIGKILL)
        assert sleeping.wait(20) == -signal.SIGKILL
    finally:
        sleeping.kill()
        sleeping.wait()


@pytest.mark.parametrize("ahead", [1, 2])
def test_a_second_warm_event_is_a_failure_of_that_worker_and_not_a_driver_that_waits_for_itself(tmp_path, ahead):
    machine = ExclusiveMachine(ahead)
    broken = worker(tmp_path, say(HELLO, BUILT, FIRST, WARM, WARM) + "sleep 600\n", "broken")
    result = run_worker(broken, job(), {}, 100, turn=machine.next())
    assert (result.outcome, result.reason) == ("failed", "it sent 'warm' after 'warm', where 'sampling' was due")
    good = worker(tmp_path, say(HELLO, BUILT, FIRST, WARM) + await_turn() + say(SAMPLING, SAMPLES, MEMORY, DONE))
    assert run_worker(good, job(), {}, 100, turn=machine.next()).outcome == "ok"


def test_every_event_has_an_arrival_by_the_drivers_own_clock(tmp_path):
    machine = ExclusiveMachine(ahead=2)
    body = say(HELLO, BUILT, FIRST, WARM) + await_turn() + say(SAMPLING) + "sleep 0.5\n" + say(SAMPLES, MEMORY, DONE)
    environment, results = worker(tmp_path, body), []
    in_parallel(lambda _: run_worker(environment, job(), {}, 100, turn=machine.next()), range(2), 2, results.append)
    assert [one.outcome for one in results] == ["ok", "ok"]
    for one in results:
        assert len(one.arrivals) == len(one.events) == 8
        assert one.arrivals == sorted(one.arrivals)
        assert one.arrivals[0] >= 0
        assert one.arrivals[5] - one.arrivals[4] >= 0.25  # from `sampling` to `samples` it slept for 0.5 s


class Interruption:
    """What in_parallel is given in the main thread: Ctrl-C when the first result comes."""

    def __call__(self, result):
        raise KeyboardInterrupt


def test_ctrl_c_ends_all_workers_and_starts_no_other(tmp_path):
    """Threads that wait for the machine would each start a worker once the one before them is killed."""
    machine = ExclusiveMachine(ahead=3)
    started = tmp_path / "started"
    count = f"echo >>{started}\n"
    environments = [
        worker(tmp_path, count + say(HELLO, BUILT, FIRST, WARM) + await_turn() + "exit 3\n", "short"),
        *(worker(tmp_path, count + say(HELLO) + "sleep 600\n", f"long{number}") for number in range(20)),
    ]
    with pytest.raises(KeyboardInterrupt):
        in_parallel(
            lambda environment: run_worker(environment, job(), {}, 500, turn=machine.next()),
            environments,
            3,
            Interruption(),
        )
    assert len(started.read_text()) <= 5  # three at first, and one after the short one, which was already begun
    assert CREW._running == set()
    assert run_worker(environments[0], job(), {}, 100, turn=machine.next()).outcome == "failed"  # it is open again


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
