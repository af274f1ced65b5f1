"""Equal threads: every framework has the count it was given; with one no second computes, with two both do.

Measured from outside, by what the kernel counts for each thread: the time it ran, and the time it was ready to run and
waited for a processor. Together, per second, they are the threads that want to compute, however busy the machine is.
How well a framework shares work out among its threads is its own business: of two it is only asked that both work.
"""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import rnnbench
from historic_helpers import HISTORIC
from rnnbench.launch import worker
from rnnbench.launch.events import Hello, Samples, Warm
from rnnbench.machine import allowed_cpus
from rnnbench.manifests import manifests
from systems_helpers import job_for

pytestmark = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not count this")

#: Products large enough for a pool to share them out.
WORKLOAD = "ce-short[batch=512,hidden=512,steps=2]"

#: Where a framework has many systems: one that compiles in seconds and has work for a pool. Else its first.
CHOSEN = {
    "jax": "jax/fine/jit-scan",
    "pytensor": "pytensor/packed/scan-jax",
    "pytorch": "pytorch/packed/eager",
    "tensorflow": "tensorflow/fine/graph",
}

#: The others are in test_historic_frameworks.py.
LIVING = [framework for framework in manifests() if framework not in HISTORIC]


def wanted_seconds(process):
    """Seconds that each thread of a process ran or was ready to."""
    wanted = {}
    for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            ran, waited, _ = file.read_text().split()
            wanted[file.parent.name] = (int(ran) + int(waited)) / 1e9
    return wanted


class Meter:
    """The threads of a process that wanted to compute since this was made."""

    def __init__(self, process):
        self._process = process
        self._start = time.monotonic(), wanted_seconds(process)

    def read(self):
        """(how many there were on average, how many had a share worth the name)"""
        began, before = self._start
        spent = {task: wanted - before.get(task, 0.0) for task, wanted in wanted_seconds(self._process).items()}
        total = sum(spent.values())
        return total / (time.monotonic() - began), sum(one > 0.02 * total for one in spent.values())


def measure(environment, framework, place, *, threads, pinned, phases=("forward", "train")):
    """(threads as the framework says, what a `Meter` reads while it is being sampled)"""
    plan = rnnbench.make_plan([CHOSEN.get(framework, f"{framework}/*")], [WORKLOAD], device="cpu", phases=phases)
    case = [case for case in plan.cases if case.system == plan.cases[0].system][-1]  # training, where it can
    job = job_for(case.system, WORKLOAD, place, phase=case.phase, threads=threads)
    job["cpus"] = job["cpus"] if pinned else ()
    # Sampled for all of its time, however steady it is.
    job["method"] |= {"warm_seconds": 0.3, "sample_seconds": 0.7, "precision_target": 0.0}
    said, meters, found = [], [], []

    def on_event(event):
        if isinstance(event, Hello):
            said.append(event.threads)
        elif isinstance(event, Warm):
            (process,) = worker.CREW._running
            (child,) = psutil.Process(process._supervisor.pid).children()
            meters.append(Meter(child.pid))
        elif isinstance(event, Samples):
            found.append(meters[0].read())

    result = worker.run_worker(environment, job, manifests()[framework].variables, 300, on_event)
    assert result.outcome == "ok", f"{result.reason}\n{result.log.tail()}"
    return said[0], found[0]


@pytest.mark.slow
@pytest.mark.parametrize("framework", LIVING)
def test_with_one_thread_no_second_one_computes(framework, environment_of, tmp_path):
    # Not pinned: on one processor it would look like one thread even if there were more.
    said, (average, _) = measure(environment_of(framework), framework, tmp_path, threads=1, pinned=False)
    assert said in (1, None)  # XLA does not tell; where it is pinned its processors are counted
    assert average < 1.5


@pytest.mark.slow
@pytest.mark.skipif(len(allowed_cpus()) < 2, reason="needs two processors")
@pytest.mark.parametrize("framework", LIVING)
def test_with_two_threads_it_says_so_and_both_compute(framework, environment_of, tmp_path):
    for attempt in range(3):  # beside other work, the second thread may not get a processor while it is watched
        (tmp_path / str(attempt)).mkdir()
        place = tmp_path / str(attempt)
        said, (_, working) = measure(environment_of(framework), framework, place, threads=2, pinned=True)
        assert said == 2
        if working >= 2:
            return
    raise AssertionError("only one thread computed")


BUSY = """
import hashlib, threading
def work():
    while True:
        hashlib.pbkdf2_hmac("sha256", b"x", b"y", 10000)  # holds no lock while it computes
for _ in range({others}):
    threading.Thread(target=work, daemon=True).start()
print(flush=True)
work()
"""


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_computing_thread_is_seen_even_where_processors_are_few(threads):
    code = BUSY.format(others=threads - 1)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        meter = Meter(process.pid)
        time.sleep(0.5)
        average, working = meter.read()
        assert average == pytest.approx(threads, abs=0.4)
        assert working == threads
    finally:
        process.kill()
        process.communicate()
