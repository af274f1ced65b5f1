"""Whole runs of real PyTorch on tiny shapes: what is timed, what is recorded, and what a time limit does."""

import os
import shutil
import time
import uuid
from pathlib import Path

import pytest

import rnnbench
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.result import Launch
from rnnbench.domain.workload import parameter_count

pytestmark = [pytest.mark.torch, pytest.mark.slow]

TINY = "ce-short[batch=2,hidden=4,steps=3]"
SYSTEMS = ["pytorch/packed/eager", "pytorch/packed/script", "pytorch/stack/eager"]


def run(systems=SYSTEMS, phases=("forward", "train"), **method):
    plan = rnnbench.make_plan(systems, [TINY], phases=phases, device="cpu")
    quick = {"effort": "quick", "sample_seconds": 0.1, "warm_seconds": 0.1, "threads": 1}
    results = rnnbench.run_plan(plan, "run", **quick | method)
    return results, [record for record in results.contents.records if isinstance(record, Launch)]


def block_sizes(launch):
    return [sample.batches for sample in launch.samples]


def test_the_protocol_of_2019_times_fifty_batches_and_everything_is_recorded(pytorch, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "default")  # TorchScript's notice of its deprecation is printed
    results, launches = run(protocol="2019")
    assert len(launches) == len(results.rows) == len(SYSTEMS) * 2
    for launch in launches:
        assert launch.outcome == "ok", launch.reason
        assert block_sizes(launch) == [5] * 10
        assert launch.warm_batches == 10
        assert min(launch.import_s, launch.build_s, launch.first_call_s, launch.warm_seconds) > 0
        assert launch.versions == {"torch": pytorch.version, "python": pytorch.python_version}
        assert launch.device_name == "mkldnn"
        assert launch.threads == 1
        biases = 2 if launch.case.system == "pytorch/stack/eager" else 1
        assert launch.parameter_count == parameter_count(parse_workload(TINY), biases)
    for row in results.rows:
        assert (row.status, row.reason) == ("verified", "")
        assert row.batches == 50
        assert row.environment == pytorch.id
        assert row.sequences_per_s == pytest.approx(2 * row.batches / row.elapsed_s)
    assert sorted(row.phase for row in results.rows if row.best) == ["forward", "train"]


def test_what_a_framework_prints_is_kept_beside_its_launch_and_nothing_else_is(pytorch, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    _, launches = run(["pytorch/packed/script"], phases=["forward"], protocol="2019", verify=False)
    (launch,) = launches
    assert "deprecated" in Path("run", launch.log).read_text()
    assert [f"logs/{path.name}" for path in Path("run", "logs").iterdir()] == [launch.log]
    assert launch.log_tail == ""  # for rows that failed


def test_the_adaptive_protocol_times_blocks_of_one_size(pytorch):
    results, launches = run(phases=["train"])
    assert [row.status for row in results.rows] == ["verified"] * len(SYSTEMS)
    for launch in launches:
        sizes = block_sizes(launch)
        assert 5 <= len(sizes) <= 400
        assert len(set(sizes)) == 1
        assert launch.warm_batches >= 3
        assert launch.first_call_s > 0


@pytest.mark.parametrize(("protocol", "fewest"), [("2019", 50), ("adaptive", 5)])
def test_latency_is_timed_batch_by_batch(pytorch, protocol, fewest):
    results, launches = run(["pytorch/packed/eager"], phases=["forward"], timing="latency", protocol=protocol)
    (launch,) = launches
    assert set(block_sizes(launch)) == {1}
    assert len(launch.samples) >= fewest
    assert [row.status for row in results.rows] == ["verified"]


# --- the time limit ------------------------------------------------------------------------------------

#: Answers who it is and then compiles for ever, in a process of its own.
STUCK_COMPILER = """#!/bin/sh
case "$*" in --version | -v | -dumpversion) exec {real} "$@" ;; esac
touch {mark}
sleep 1000
"""


@pytest.fixture
def stuck_compiler(tmp_path, monkeypatch):
    """A C++ compiler that never ends; returns the file that says it has been called."""
    mark = tmp_path / "compiler-was-called"
    compiler = tmp_path / "stuck-compiler"
    compiler.write_text(STUCK_COMPILER.format(real=shutil.which("g++") or shutil.which("c++"), mark=mark))
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    return mark


@pytest.fixture
def descendants(monkeypatch):
    """Whatever was started by this test, found by a variable that all of it inherits."""
    token = uuid.uuid4().hex
    monkeypatch.setenv("RNNBENCH_TEST_TOKEN", token)

    def living():
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if int(process.name) != os.getpid() and token.encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue  # gone, or another user's
        return found

    return living


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("c++")), reason="needs a C++ compiler")
def test_compiling_past_the_limit_is_a_timeout_that_leaves_no_process_and_the_run_goes_on(
    pytorch, stuck_compiler, descendants
):
    systems = ["pytorch/packed/compile", "pytorch/stack/eager"]
    results, launches = run(systems, ["forward"], protocol="2019", verify=False, launches=2, limit_seconds=25)
    assert stuck_compiler.exists()
    rows = {row.execution: row for row in results.rows}
    assert (rows["compile"].status, rows["compile"].reason) == ("timeout", "over 25 s during first call")
    assert rows["compile"].stage == "first call"
    assert rows["eager"].status == "unverified"  # as it was not to be verified
    assert rows["eager"].launches == 2
    outcomes = [launch.outcome for launch in launches]
    assert sorted(outcomes) == ["ok", "ok", "timeout"]  # once was enough for the one that hangs
    assert outcomes[-1] == "ok"
    deadline = time.monotonic() + 10  # the kernel needs a moment to bury what was killed
    while descendants() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert descendants() == []
