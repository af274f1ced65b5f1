"""What a worker has started ends with it, and a driver that is killed at any moment leaves nothing running."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from fake_workers import (
    BUILT,
    DAEMON,
    DONE,
    FIRST,
    HELLO,
    MARK,
    MEMORY,
    SAMPLES,
    SAMPLING,
    WARM,
    await_turn,
    job,
    marked,
    python_worker,
    say,
    until,
    worker,
)  # fmt: skip
from rnnbench.launch import exclusive
from rnnbench.launch.exclusive import ExclusiveMachine
from rnnbench.launch.worker import run_worker

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")

LONG = 300.0  # a limit that no test waits for


def run(environment, mark, mode="start", **options):
    return run_worker(environment, job(mode), {MARK: mark}, LONG, **options)


@pytest.fixture
def mark(request, tmp_path):
    """Names the processes of this test, which are all gone at its end."""
    name = f"{request.node.name}-{os.getpid()}"
    yield name
    for process in marked(name):
        os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("end", [say(HELLO, DONE) + "sleep 600", "exit 3", "kill -SEGV $$", say(HELLO, "rubbish")])
def test_a_daemon_that_a_worker_started_ends_with_it(tmp_path, mark, end):
    seen = []
    environment = worker(tmp_path, DAEMON * 2 + say(HELLO) + "sleep 0.05\n" + end.removeprefix(say(HELLO)))
    run(environment, mark, on_event=lambda event: seen.append(len(marked(mark))))
    assert seen[0] >= 2  # they were there
    assert marked(mark) == []


def test_a_worker_has_a_session_of_its_own_and_the_variables_it_was_given(tmp_path, mark):
    body = 'test "$(cut -d" " -f6 /proc/$$/stat)" = $$ && test -n "$PYTHONPATH" && ' + say(HELLO, DONE).replace(
        "\n", "; ", 1
    )
    assert run(worker(tmp_path, body), mark).outcome == "ok"


FORKS_AND = """
channel = int(os.environ["RNNBENCH_CHANNEL"])
if os.fork() == 0:
    if {aside}: os.setsid()
    time.sleep(600)
os.write(channel, {hello!r} + b"\\n")
{end}
"""


@pytest.mark.parametrize("aside", [False, True])
@pytest.mark.parametrize(
    ("end", "reason"),
    [("os.abort()", "killed by SIGABRT during build"), ("os._exit(3)", "exited with code 3 without an error message")],
)
def test_a_worker_that_dies_ends_its_launch_at_once_although_a_child_holds_its_pipes(
    tmp_path, mark, aside, end, reason
):
    """A forked child keeps the channel and the output open: waiting for their end would take until the limit."""
    environment = python_worker(tmp_path, FORKS_AND.format(aside=aside, hello=HELLO.encode(), end=end))
    start = time.monotonic()
    result = run(environment, mark)
    assert (result.outcome, len(result.events)) == ("failed", 1)
    assert result.reason.startswith(reason)
    assert time.monotonic() - start < LONG / 10
    assert marked(mark) == []


def test_a_worker_that_dies_leaves_no_core(tmp_path, mark):
    """Writing gigabytes to a disk, or to a program of the system, would hold the launch up."""
    result = run(worker(tmp_path, "grep core /proc/self/limits\nkill -ABRT $$"), mark)
    assert result.log.text().split()[4] in ("0", "1")
    assert result.reason.startswith("killed by SIGABRT")


def test_an_interpreter_that_cannot_be_started_is_a_failure_with_the_reason(tmp_path, mark):
    environment = worker(tmp_path, "")
    os.unlink(environment.python)
    result = run(environment, mark)
    assert result.outcome == "failed"
    assert result.reason == "its interpreter cannot be started (No such file or directory) during import"


def test_a_supervisor_that_is_killed_takes_its_worker_along(tmp_path, mark):
    supervisors = set()

    def is_found():  # not while the worker becomes another program: for that moment it has no environment
        parents = {int(Path(f"/proc/{one}/stat").read_text().split()[3]) for one in marked(mark)}
        supervisors.update(parents & set(marked(mark)))
        return supervisors

    def kill_supervisor(event):
        until(is_found)
        os.kill(supervisors.pop(), signal.SIGKILL)

    result = run(worker(tmp_path, say(HELLO) + "exec sleep 600"), mark, on_event=kill_supervisor)
    assert result.outcome == "failed"
    until(lambda: marked(mark) == [])


#: It forks a daemon before it says anything, waits for its turn if it has one, and then sleeps.
BUSY = DAEMON + say(HELLO, BUILT, FIRST, WARM) + await_turn() + say(SAMPLING) + "sleep 0.03\n"
SLOW = BUSY + "exec sleep 600\n"
QUICK = BUSY + say(SAMPLES, MEMORY, DONE) + "exec sleep 600\n"


def drive(environments, mark, ahead):
    """What a driver does, in a process that was forked for it: workers one after the other, `ahead` at a time."""
    machine = ExclusiveMachine(ahead)

    def work():
        for _ in range(50):
            for environment in environments:
                run(environment, mark, "measure", turn=machine.next())

    threads = [threading.Thread(target=work) for _ in range(ahead)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("ahead", [1, 3])
def test_a_driver_killed_at_any_of_a_hundred_moments_leaves_nothing_running(tmp_path, mark, ahead, monkeypatch):
    """From before the first fork to where workers have begun, ended, and others are suspended."""
    monkeypatch.setattr(exclusive, "probe_seconds", lambda cpus: time.sleep(0.005) or 1.0)
    environments = [worker(tmp_path, QUICK, "quick"), worker(tmp_path, SLOW, "slow")]
    reached = []
    for moment in range(50):  # for each `ahead`
        driver = os.fork()
        if driver == 0:
            try:
                drive(environments, mark, ahead)
            finally:
                os._exit(0)
        # Most kills fall into the first tenth of a second, when supervisors and workers are born.
        time.sleep(0.0025 * moment if moment < 40 else 0.02 * (moment - 35))
        reached.append(len(marked(mark)))
        os.kill(driver, signal.SIGKILL)
        os.waitpid(driver, 0)
        until(lambda: marked(mark) == [])
    assert 0 in reached  # some kills were that early
    assert max(reached) > 3  # and some so late that there was something to leave behind
