"""Interrupted during a measurement: finished launches are kept, no worker keeps running, and the run can be resumed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rnnbench
from fake_workers import MARK, marked
from made_up import write_framework
from rnnbench.launch.schedule import shuffled

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for workers in /proc")

# One system ends at once. The other reports that it was reached, and continues when the file `hold` is removed.
CODE = """
import os, time
from rnnbench_worker.program import Program

# Not in the framework's own folder: a run is not resumed when a file there has changed.
PLACE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "signals")


def describe(job):
    return {"versions": {}, "device": "cpu", "device_name": "", "threads": None}


def build(job, parameters):
    program = Held() if job["execution"] == "held" else Quick()
    program.count = sum(array.size for array in parameters.values())
    return program


class Quick(Program):
    def feed(self, staged):
        pass

    def forward(self, fed):
        pass

    def parameter_count(self):
        return self.count


class Held(Quick):
    def feed(self, staged):
        hold = os.path.join(PLACE, "hold")
        if os.path.exists(hold):
            with open(os.path.join(PLACE, "reached.part"), "w") as file:
                file.write(str(os.getpid()))
            os.rename(os.path.join(PLACE, "reached.part"), os.path.join(PLACE, "reached"))
        while os.path.exists(hold):
            time.sleep(0.1)
"""

CASES = ("holdup/packed/*", "-w", "ce-short[batch=3,hidden=4,steps=4]", "--device", "cpu", "--phase", "forward")


class Holdup:
    """The framework's folder, and drivers of it in separate processes."""

    def __init__(self, folder):
        write_framework(folder, ("quick", "held"), CODE)
        self.signals = folder.parent / "signals"
        self.signals.mkdir()
        (self.signals / "hold").touch()
        self.started = []

    def start(self, *arguments):
        driver = subprocess.Popen(
            [sys.executable, "-m", "rnnbench", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.started.append(driver)
        return driver

    def reached(self):
        """Wait until the held worker is in its measurement, and return its process."""
        wait_until((self.signals / "reached").exists)
        return int((self.signals / "reached").read_text())

    def release(self):
        (self.signals / "hold").unlink(missing_ok=True)

    def seed(self):
        """A random seed with which the quick system is launched first."""
        cases = rnnbench.make_plan([CASES[0]], [CASES[2]], device="cpu", phases=["forward"]).cases
        return str(next(seed for seed in range(99) if shuffled(cases, seed, 0)[0].system == "holdup/packed/quick"))


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def is_gone(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def holdup(private_folders, offered):
    made = Holdup(private_folders / "holdup")
    offered("holdup", private_folders / "holdup")
    yield made
    made.release()
    for driver in made.started:
        if driver.poll() is None:
            driver.kill()
        driver.communicate()


def begin(holdup):
    """A run whose quick case is done and whose held case is being measured."""
    options = ("--no-verify", "--protocol", "2019", "--launches", "1", "--effort", "quick", "--seed", holdup.seed())
    driver = holdup.start("run", *CASES, *options, "--out", "run")
    return driver, holdup.reached()


def rows():
    return {row.execution: row for row in rnnbench.load_run("run").rows}


def finish(holdup):
    """Resume the run, with nothing held."""
    holdup.release()
    kept = Path("run/launches.jsonl").read_text()
    resumed = holdup.start("run", "--resume", "run")
    _, said = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, said
    assert "timing: 1 launches" in said
    assert Path("run/launches.jsonl").read_text().startswith(kept)
    assert {name: row.launches for name, row in rows().items()} == {"quick": 1, "held": 1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_saved_says_how_to_go_on_and_does(holdup, number):
    driver, worker = begin(holdup)
    driver.send_signal(number)
    _, said = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert "rnnbench run --resume run" in said
    assert "Traceback" not in said
    assert is_gone(worker)
    assert rows()["quick"].batches == 50
    assert rows()["held"].reason == "not measured yet"
    finish(holdup)


def test_a_driver_killed_outright_takes_its_worker_along_and_the_run_goes_on(holdup):
    driver, worker = begin(holdup)
    assert not is_gone(worker)
    driver.kill()
    driver.communicate(timeout=60)
    wait_until(lambda: is_gone(worker))
    assert rows()["quick"].batches == 50
    finish(holdup)


@pytest.mark.parametrize("command", ["run", "profile"])
def test_a_run_that_goes_on_is_left_alone_by_others(holdup, command):
    """Two drivers of one run would do everything twice, and disturb each other's timing."""
    driver, _ = begin(holdup)
    kept = Path("run/launches.jsonl").read_bytes()
    second = holdup.start(command, "--resume", "run")
    _, said = second.communicate(timeout=60)
    assert second.returncode == 2
    assert "run is in use: another rnnbench is running it" in said
    assert Path("run/launches.jsonl").read_bytes() == kept
    holdup.release()
    driver.communicate(timeout=120)
    assert driver.returncode == 0
    assert {name: row.launches for name, row in rows().items()} == {"quick": 1, "held": 1}


def test_an_interrupted_verification_ends_with_130_and_leaves_no_worker(holdup):
    driver = holdup.start("verify", "holdup/packed/held", *CASES[1:])
    worker = holdup.reached()
    driver.send_signal(signal.SIGINT)
    _, said = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert "Traceback" not in said
    assert is_gone(worker)


def test_a_hanging_system_can_be_interrupted_too(sabotage):
    """A sabotage system that never ends must not outlive its driver either."""
    arguments = ["sabotage/packed/hang", *CASES[1:], "--no-verify", "--out", "run"]
    command = [sys.executable, "-m", "rnnbench", "run", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as driver:
        children = Path(f"/proc/{driver.pid}/task/{driver.pid}/children")

        def workers():
            return [child for child in children.read_text().split() if is_worker(child)]

        wait_until(workers)
        (worker,) = workers()
        driver.send_signal(signal.SIGINT)
        said = driver.stderr.read()
    assert driver.returncode == 130
    assert "--resume run" in said
    assert is_gone(worker)


@pytest.mark.parametrize("ahead", ["1", "3"])
def test_ctrl_c_ends_a_run_with_all_that_it_has_started(sabotage, monkeypatch, ahead):
    """With several workers, those that wait for their turn must not start, and those that are stopped must end."""
    mark = f"ctrl-c-{ahead}-{os.getpid()}"
    monkeypatch.setenv(MARK, mark)
    systems = [f"sabotage/packed/{name}" for name in ("hang", "honest", "noise", "raise")]
    arguments = [*systems, *CASES[1:], "--no-verify", "--ahead", ahead, "--out", "run"]
    command = [sys.executable, "-m", "rnnbench", "run", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as driver:
        wait_until(lambda: len(marked(mark)) >= 1 + 2 * int(ahead))  # each worker has a supervisor
        driver.send_signal(signal.SIGINT)
        _, said = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert "Traceback" not in said
    assert marked(mark) == []


def is_worker(process):
    try:
        return b"rnnbench_worker" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
