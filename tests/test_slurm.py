"""A run spread over a real Slurm of three nodes on this machine: whatever is lost, it ends whole, nothing twice."""

import getpass
import os
import pty
import select
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from made_up import write_framework
from rnnbench.analysis.check import check_run
from rnnbench.analysis.compare import compare_runs
from rnnbench.analysis.rows import make_rows
from rnnbench.domain.result import Launch, Limit
from rnnbench.files import is_locked
from rnnbench.store import read_folder
from slurm_world import NODES, Cluster, missing_programs

pytestmark = pytest.mark.skipif(
    bool(missing_programs()), reason=f"Slurm is not installed: no {', '.join(missing_programs())}"
)

# Each worker notes when it began and was last seen, on which node; it waits while a file holds its node or all.
CODE = """
import os, time
from rnnbench_worker.program import Program

PLACE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "signals")
NODE = os.environ["SLURMD_NODENAME"]


def describe(job):
    return {"versions": {}, "device": "cpu", "device_name": "", "threads": None}


def build(job, parameters):
    program = Watched()
    program.count = sum(array.size for array in parameters.values())
    return program


class Watched(Program):
    begun = time.monotonic()

    def note(self):
        path = os.path.join(PLACE, "%s-%d" % (NODE, os.getpid()))
        with open(path + ".part", "w") as file:
            file.write("%r %r" % (self.begun, time.monotonic()))
        os.rename(path + ".part", path)

    def feed(self, staged):
        self.note()
        while any(os.path.exists(os.path.join(PLACE, name)) for name in ("hold", "hold-" + NODE)):
            time.sleep(0.05)
            self.note()

    def forward(self, fed):
        pass

    def parameter_count(self):
        return self.count
"""

GROUPS = 3
OPTIONS = ("--device", "cpu", "--effort", "quick", "--protocol", "2019", "--launches", "1", "--on", "slurm")


def workloads(count=GROUPS):
    return [word for batch in range(2, 2 + count) for word in ("-w", f"ce-short[batch={batch},hidden=4,steps=4]")]


@pytest.fixture(scope="module")
def daemons():
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def cluster(daemons, monkeypatch):
    """Three idle nodes, which this test's commands find."""
    for name, value in daemons.variables.items():
        monkeypatch.setenv(name, value)
    daemons.reset()
    yield daemons
    daemons.call("scancel", f"--user={getpass.getuser()}")


class World:
    """A framework whose workers can be held and are watched, and drivers in processes of their own."""

    def __init__(self, folder):
        write_framework(folder, ("one", "other"), CODE)
        self.signals = folder.parent / "signals"
        self.signals.mkdir()
        self._started = []

    def start(self, *arguments, terminal=None):
        driver = subprocess.Popen(
            [sys.executable, "-m", "rnnbench", "run", *arguments],
            stdin=terminal or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=terminal or subprocess.PIPE,
            text=True,
        )
        self._started.append(driver)
        return driver

    def begin(self, *arguments, groups=GROUPS, terminal=None):
        options = ("--phase", "forward", "--no-verify", *OPTIONS, "--out", "run", *arguments)
        return self.start("watched/packed/*", *workloads(groups), *options, terminal=terminal)

    def hold(self, node=""):
        (self.signals / (f"hold-{node}" if node else "hold")).touch()

    def release(self):
        for path in self.signals.glob("hold*"):
            path.unlink()

    def busy_nodes(self):
        """Those with a worker that was seen in the last moments."""
        now = time.monotonic()
        return {node for node, (_, last) in self.visits() if now - last < 2}

    def visits(self):
        """(node, (begun, last seen)) of each worker."""
        found = []
        for path in self.signals.glob("n?-*"):
            if not path.name.endswith(".part"):
                found.append((path.name[:2], tuple(map(float, path.read_text().split()))))
        return found

    def end(self):
        self.release()
        for driver in self._started:
            if driver.poll() is None:
                driver.kill()
            driver.communicate()


@pytest.fixture
def world(private_folders, offered):
    made = World(private_folders / "watched")
    offered("watched", private_folders / "watched")
    yield made
    made.end()


def wait_until(condition, seconds=55.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def finished(driver, code=0):
    out, said = driver.communicate(timeout=100)
    assert driver.returncode == code, f"{out}\n{said}"
    assert "Traceback" not in said
    return said


def require_whole(folder="run", groups=GROUPS, systems=2):
    """Every case was timed once, all cases of a group on one node, and every record says where."""
    contents = read_folder(Path(folder))
    launches = [record for record in contents.records if isinstance(record, Launch)]
    assert contents.damaged == ()
    assert len(contents.run.cases) == groups * systems
    assert sorted(launch.case.key for launch in launches) == sorted(case.key for case in contents.run.cases)
    assert {launch.outcome for launch in launches} == {"ok"}
    nodes = {}
    for launch in launches:
        nodes.setdefault(launch.case.group, set()).add(launch.node)
    assert len(nodes) == groups
    assert all(len(each) == 1 and each <= set(contents.run.machines) for each in nodes.values())
    return contents


def test_a_verified_run_is_one_folder_that_says_where_each_row_is_from(cluster, sabotage, call):
    systems = ("sabotage/packed/honest", "sabotage/packed/no-ctc")
    answer = call("run", *systems, *workloads(1), *OPTIONS, "--out", "run")
    assert answer.code == 0, answer.err
    contents = require_whole(groups=2)  # two phases
    rows = make_rows(contents)
    assert {row.status for row in rows} == {"verified"}
    assert {row.node for row in rows} <= set(NODES)
    assert all(row.system in answer.out and f"on {row.node}" in answer.out for row in rows)
    assert [finding.level for finding in check_run(contents) if finding.about == "completeness"] == ["ok"]
    # The machine's limit was measured, or refused, on each node that timed something.
    timed_on = {record.node for record in contents.records if isinstance(record, Launch)}
    assert {record.node for record in contents.records if isinstance(record, Limit)} == timed_on
    # Collected again, the bytes are the same.
    before = [Path("run", name).read_bytes() for name in ("run.json", "launches.jsonl")]
    assert call("run", "--resume", "run").code == 0
    assert [Path("run", name).read_bytes() for name in ("run.json", "launches.jsonl")] == before


def test_nodes_are_all_used_and_none_has_two_jobs_at_a_time(cluster, world):
    world.hold()
    driver = world.begin(groups=5)
    wait_until(lambda: len(world.busy_nodes()) == 3)
    world.release()
    finished(driver)
    require_whole(groups=5)
    by_node = {}
    for node, times in world.visits():
        by_node.setdefault(node, []).append(times)
    assert set(by_node) == set(NODES)
    for times in by_node.values():
        ordered = sorted(times)
        assert all(last < begun for (_, last), (begun, _) in pairwise(ordered))


def test_the_part_of_a_lost_node_is_done_by_another(cluster, world):
    world.hold()
    driver = world.begin()
    wait_until(lambda: len(world.busy_nodes()) == 3)
    cluster.kill_node("n2")
    world.release()
    said = finished(driver)
    assert "n2 is lost" in said
    contents = require_whole()
    assert "n2" not in {row.node for row in make_rows(contents)}


def test_a_node_that_is_falsely_thought_lost_goes_on_and_the_first_complete_visit_counts(cluster, world):
    world.hold("n1")
    driver = world.begin()
    wait_until(lambda: "n1" in world.busy_nodes())
    cluster.cut_off("n1")
    finished(driver)
    contents = require_whole()
    assert "n1" not in {row.node for row in make_rows(contents)}
    before = Path("run/launches.jsonl").read_bytes()
    (part,) = (path for path in Path("run/parts").glob("*/on/n1/launches.jsonl") if "000" not in path.parts)
    assert len(list(part.parents[1].iterdir())) == 2  # both nodes have visited it
    world.release()  # now it completes too, but too late to count
    wait_until(lambda: b'"kind":"launch"' in part.read_bytes())
    finished(world.start("--resume", "run"))
    assert Path("run/launches.jsonl").read_bytes() == before


def test_jobs_go_on_without_their_driver_and_are_collected_later(cluster, world):
    """One driver is killed, one is interrupted, one is refused while another watches: no job is lost or made twice."""
    world.hold()
    driver = world.begin()
    wait_until(lambda: len(world.busy_nodes()) == 3)
    driver.kill()
    driver.communicate()
    jobs = {line.split()[0] for line in cluster.queue()}
    watching = world.start("--resume", "run")
    wait_until(lambda: is_locked(Path("run/driver.lock")))
    assert "another rnnbench watches run" in finished(world.start("--resume", "run"), code=2)
    watching.send_signal(signal.SIGINT)
    assert "--cancel" in finished(watching, code=130)
    assert {line.split()[0] for line in cluster.queue()} == jobs
    world.release()
    finished(world.start("--resume", "run"))
    require_whole()
    assert len(world.visits()) == 2 * GROUPS


def test_a_cancelled_job_is_reported_and_submitted_again_by_resume(cluster, world):
    world.hold()
    driver = world.begin()
    wait_until(lambda: len(world.busy_nodes()) == 3)
    lost = next(line.split()[0] for line in cluster.queue() if line.endswith("n1"))
    cluster.call("scancel", lost)
    world.release()
    said = finished(driver, code=1)
    assert "1 incomplete" in said
    assert "rnnbench run --resume run" in said
    assert sum(row.wall_s is None for row in make_rows(read_folder(Path("run")))) == 2
    finished(world.start("--resume", "run"))
    require_whole()


def test_ctrl_c_asks_whether_to_cancel_the_jobs_where_somebody_can_answer(cluster, world):
    world.hold()
    screen, terminal = pty.openpty()
    driver = world.begin(groups=2, terminal=terminal)
    wait_until(world.busy_nodes)
    driver.send_signal(signal.SIGINT)
    said = b""
    while b"Cancel the jobs of this run? [y/N]" not in said:
        assert select.select([screen], [], [], 30)[0], said
        said += os.read(screen, 1000)
    os.write(screen, b"y\n")
    assert driver.wait(30) == 130
    wait_until(lambda: not cluster.queue())
    os.close(screen)
    os.close(terminal)


def test_unlike_nodes_are_a_problem_and_no_mean_is_made_of_them(cluster, world, monkeypatch):
    """One node says that it has another processor, by a module that its interpreter loads at its start."""
    Path("patched").mkdir()
    Path("patched/sitecustomize.py").write_text(
        "import os\nif os.environ.get('SLURMD_NODENAME') == 'n3':\n    import rnnbench.machine\n"
        "    rnnbench.machine.describe_processor = lambda: 'another processor'\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{Path('patched').resolve()}{os.pathsep}{os.environ['PYTHONPATH']}")
    world.hold()
    assert "rnnbench run --resume run" in finished(world.begin("--detach"))
    wait_until(lambda: len(world.busy_nodes()) == 3)
    world.release()
    wait_until(lambda: not cluster.queue())  # detached jobs end by themselves
    finished(world.start("--resume", "run"))
    contents = require_whole()
    assert {row.node for row in make_rows(contents)} == set(NODES)
    (finding,) = (one for one in check_run(contents) if one.about == "nodes")
    assert finding.level == "problem"
    assert "another processor" in finding.what
    comparison = compare_runs(contents, contents)
    assert {case.verdict for case in comparison.cases} == {"no difference seen"}
    assert comparison.geometric_mean is None
    assert any("unlike machines" in note for note in comparison.notes)
    # Without the odd node, there is nothing to object to.
    alike = msgspec.structs.replace(
        contents.run, machines=dict.fromkeys(contents.run.machines, contents.run.machines["n1"])
    )
    like_contents = msgspec.structs.replace(contents, run=alike)
    assert next(one for one in check_run(like_contents) if one.about == "nodes").level != "problem"
    assert compare_runs(like_contents, like_contents).geometric_mean is not None


def test_a_plan_that_fails_ends_the_run_with_its_reason(cluster, world):
    driver = world.begin("--threads", "999")
    said = finished(driver, code=1)
    assert "999 threads are too many" in said


def test_what_sbatch_refuses_is_said(cluster, world):
    said = finished(world.begin("--", "--partition=nowhere"), code=2)
    assert "nowhere" in said or "partition" in said
    assert "sbatch refused" in said
