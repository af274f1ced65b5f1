"""Load that is always there: seen by the probe, by what the kernel counts for a worker, and named before a run."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

import rnnbench
from made_up import make_case, make_launch
from rnnbench.analysis.check import check_run
from rnnbench.domain.noise import is_noisy, was_crowded, was_slow
from rnnbench.domain.result import Launch
from rnnbench.launch.busy import describe_change, describe_load, describe_load_before
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.launch.probe import BestProbe, on_quiet_processors, probe_seconds, quietest
from rnnbench.machine import allowed_cpus, describe_machine, physical_cpus
from rnnbench.method import make_method, pick_threads
from rnnbench.session import MoreLaunches, begin_run, resume
from rnnbench.store import read_folder
from rnnbench_worker.usage import Usage, busy_seconds

TINY = "ce-short[batch=3,hidden=4,steps=4]"
CASE = make_case()

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be pinned here")


@pytest.fixture(autouse=True)
def quiet_machine():
    """Here it is not quiet."""


class Notes(Listener):
    def __init__(self):
        self.said = []

    def note(self, text):
        self.said.append(text)

    def timing(self, total):
        self.said.append("timing")


@contextlib.contextmanager
def burning(cpus, each=4):
    """Processes that compute without a pause, that many on each processor."""
    code = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint(flush=True)\nwhile True: pass"
    started = [subprocess.Popen([sys.executable, "-c", code, str(cpu)], stdout=subprocess.PIPE) for cpu in cpus * each]
    try:
        for process in started:
            process.stdout.readline()
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    ("before", "after", "best", "slow"),
    [
        (1.0, 1.0, 1.0, False),
        (1.15, 1.15, 1.0, False),
        (1.3, 1.3, 1.0, True),
        (1.3, 1.1, 1.0, False),  # one slow probe alone is not enough
        (1.3, 1.3, None, False),
        (None, 1.3, 1.0, False),
    ],
)
def test_a_launch_was_slow_if_both_probes_are_far_from_the_best_known(before, after, best, slow):
    launch = make_launch(CASE, 1.0, probe_before_s=before, probe_after_s=after, probe_best_s=best)
    assert was_slow(launch, 0.1) is slow


@pytest.mark.parametrize(
    ("cpu", "others", "switches", "crowded"),
    [
        (1.0, 1.0, 280, True),
        (1.0, 0.05, 280, False),  # it interrupts itself: more threads than processors
        (1.0, 1.0, 10, False),  # others used a processor that it left idle
        (2.0, 0.15, 800, False),  # less than a tenth of what it used
        (0.1, 0.2, 30, True),
        (1.0, None, 280, False),
    ],
)
def test_a_launch_was_crowded_if_others_computed_and_it_had_to_make_room(cpu, others, switches, crowded):
    used = {"usage_s": 1.0, "cpu_s": cpu, "others_cpu_s": others, "involuntary_switches": switches}
    assert was_crowded(make_launch(CASE, 1.0, **used), 0.1) is crowded
    assert is_noisy(make_launch(CASE, 1.0, **used), 0.1) is crowded


def test_nothing_known_is_not_noisy():
    assert not is_noisy(make_launch(CASE, 1.0), 0.1)


def test_the_best_of_the_machine_is_the_second_best_of_its_last_runs(tmp_path):
    """One lucky run must not make all later ones look slow."""
    path = tmp_path / "deep" / "probes.json"
    for seconds in (3.0, 1.0, 2.0):
        run = BestProbe(path)
        run.add(seconds + 5)
        run.add(seconds)
        run.keep()
    assert BestProbe(path).seconds == 2.0
    quick = BestProbe(path)
    quick.add(1.5)
    assert quick.seconds == 1.5
    for _ in range(20):
        run = BestProbe(path)
        run.add(4.0)
        run.keep()
    assert BestProbe(path).seconds == 4.0


def test_what_is_remembered_may_be_damaged_or_impossible_to_write(tmp_path):
    path = tmp_path / "probes.json"
    for content in ("rubbish", "[0, -1]", '["x"]', "[1e999]"):
        path.write_text(content)
        assert BestProbe(path).seconds is None
    blocked = BestProbe(path / "below a file")
    blocked.add(1.0)
    blocked.keep()
    assert blocked.seconds == 1.0


def test_machines_and_numbers_of_processors_are_kept_apart(private_folders, monkeypatch):
    for cpus in ((0,), (0, 1)):
        best = BestProbe.of_machine(cpus)
        best.add(1.0)
        best.keep()
    monkeypatch.setattr("rnnbench.launch.probe.describe_processor", lambda: "another")
    best.add(2.0)
    BestProbe.of_machine((0,)).keep()  # nothing was measured: nothing is kept
    assert len(list((private_folders / "cache/rnnbench/probes").iterdir())) == 2


def test_the_probe_sees_a_load_on_any_of_the_workers_processors_and_leaves_the_thread_where_it_was():
    cpus, before = tuple(allowed_cpus()[:2]), os.sched_getaffinity(0)
    alone = min(probe_seconds(cpus) for _ in range(3))
    with burning(cpus[-1:]):
        assert min(probe_seconds(cpus) for _ in range(2)) > 1.2 * alone
    assert os.sched_getaffinity(0) == before


def test_the_quietest_processors_are_those_that_are_never_slow(monkeypatch):
    times = {0: [1.0, 1.0], 1: [0.9, 1.7], 2: [1.6, 1.6], 3: [1.1, 1.0]}  # processor 1 is slow only now and then
    monkeypatch.setattr("rnnbench.launch.probe._lower_quartile", lambda cpu, windows: times[cpu].pop(0))
    assert quietest([0, 1, 2, 3], 2) == (0, 3)


def test_a_method_that_takes_every_core_is_left_as_it_is(monkeypatch):
    cores = physical_cpus()
    everything = make_method()
    assert on_quiet_processors(everything, "cpu") is on_quiet_processors(everything, "cuda") is everything
    monkeypatch.setattr("rnnbench.launch.probe.physical_cpus", lambda: [*cores, max(cores) + 1])
    monkeypatch.setattr("rnnbench.launch.probe._lower_quartile", lambda cpu, windows: float(cpu != max(cores) + 1))
    assert max(cores) + 1 in on_quiet_processors(everything, "cpu").cpus
    # To feed a GPU all cores may be used; where it is timed is chosen at each launch.
    chosen = on_quiet_processors(everything, "cuda")
    assert (chosen.cpus, chosen.quiet_cpus) == ((*cores, max(cores) + 1), len(cores))


def test_a_worker_counts_what_others_take_of_its_processors():
    before = os.sched_getaffinity(0)
    cpu = allowed_cpus()[-1]
    os.sched_setaffinity(0, {cpu})
    try:
        usage = Usage()
        with burning((cpu,), each=3):
            usage.start()
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                pass
            used = usage.fields()
    finally:
        os.sched_setaffinity(0, before)
    assert used["others_cpu_s"] > 0.4 * used["usage_s"]
    assert used["cpu_s"] < 0.7 * used["usage_s"]
    assert used["involuntary_switches"] > 80 * used["cpu_s"]


def test_processors_that_are_not_counted_are_not_known(tmp_path):
    (tmp_path / "stat").write_text("cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 100 100 100 9 9 100 100 100 7 7\n")
    assert busy_seconds([0], str(tmp_path / "stat")) == 600 / os.sysconf("SC_CLK_TCK")
    assert busy_seconds([0, 1], str(tmp_path / "stat")) is None
    assert busy_seconds([], str(tmp_path / "stat")) is None
    assert busy_seconds([0], str(tmp_path / "nowhere")) is None


def test_a_burning_process_is_named_before_the_run_starts(sabotage):
    with burning(tuple(allowed_cpus()[:1]), each=1) as (process,):
        assert f"({process.pid})" in describe_load(1.0, named=100)
        notes = Notes()
        run_honest("named", notes)
    assert any("this machine is busy" in text for text in notes.said[: notes.said.index("timing")])


def test_the_load_of_creating_environments_is_not_taken_for_that_of_others(sabotage, monkeypatch):
    loads = [0.5]

    def creating(plan, listener):
        loads[0] = 90.0
        return prepare(plan, listener)

    monkeypatch.setattr("os.getloadavg", lambda: (loads[0], 0.0, 0.0))
    monkeypatch.setattr("rnnbench.session.prepare", creating)
    plan = rnnbench.make_plan(["sabotage/packed/honest"], [TINY], device="cpu", phases=["forward"])
    assert begin_run(plan, make_method(effort="quick"), Path("run"), Listener()).machine.load == 0.5


def test_a_run_that_began_after_other_work_says_at_once_that_it_is_not_fit_to_publish(sabotage, monkeypatch):
    cpus = len(allowed_cpus())
    monkeypatch.setattr("os.getloadavg", lambda: (cpus + 0.5, 0.0, 0.0))
    notes = Notes()
    run_honest("run", notes)
    said = [text for text in notes.said if "wait a minute" in text]
    assert said == [f"warning: {describe_load_before(read_folder(Path('run')).run.machine)}"]
    assert f"{cpus + 0.5:.1f} on {cpus} processors" in said[0]
    (load,) = [one for one in check_run(read_folder(Path("run"))) if one.about == "other load"]
    assert load.level == "problem"
    monkeypatch.setattr("os.getloadavg", lambda: (cpus, 0.0, 0.0))
    assert describe_load_before(describe_machine()) == ""


def test_a_sleeping_process_is_not_named():
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            assert f"({process.pid})" not in describe_load()
        finally:
            process.kill()


def run_honest(folder, listener=None):
    plan = rnnbench.make_plan(["sabotage/packed/honest"], [TINY], device="cpu", phases=["forward"])
    quick = {"effort": "quick", "sample_seconds": 0.6, "precision_target": 0.0, "warm_seconds": 0.1, "verify": False}
    results = rnnbench.run_plan(plan, folder, listener=listener, **quick)
    (launch,) = [record for record in results.contents.records if isinstance(record, Launch)]
    assert launch.outcome == "ok", launch.reason
    return launch


def test_a_launch_beside_a_steady_load_is_noisy(sabotage):
    """The load is there before the run begins and stays: no probe changes, and no best is known."""
    with burning(pick_threads(0)[1]):
        launch = run_honest("run")
    assert was_crowded(launch, 0.1), launch
    assert launch.noisy


def test_noisy_launches_are_repeated_when_their_run_is_resumed(sabotage, monkeypatch):
    with monkeypatch.context() as busy:
        busy.setattr("rnnbench.launch.launcher.is_noisy", lambda launch, threshold: True)
        assert run_honest("run").noisy
    monkeypatch.setattr("rnnbench.launch.launcher.is_noisy", lambda launch, threshold: False)
    contents = resume(Path("run"), Listener(), trust=True)  # quick effort repeats nothing by itself
    assert [(record.attempt, record.noisy) for record in contents.records if isinstance(record, Launch)] == [(0, True)]
    contents = resume(Path("run"), Listener(), repeats=2, trust=True)
    attempts = [(record.attempt, record.noisy) for record in contents.records if isinstance(record, Launch)]
    assert attempts == [(0, True), (1, False)]


def test_rows_with_wide_intervals_get_more_launches_and_no_other_any(sabotage, call):
    names = ["sabotage/packed/honest", "sabotage/packed/stale-state"]  # the second is wrong: its time is not believed
    plan = rnnbench.make_plan(names, [TINY], device="cpu", phases=["forward"])
    rnnbench.run_plan(plan, "run", effort="quick", sample_seconds=0.1, warm_seconds=0.1)
    assert call("run", "--resume", "run", "--launches", "3", "--trust").code == 0
    launches = [record for record in read_folder(Path("run")).records if isinstance(record, Launch)]
    rounds = {name: [one.round for one in launches if one.case.system == name] for name in names}
    assert rounds == {names[0]: [0, 1, 2], names[1]: [0]}


@pytest.mark.parametrize(("times", "is_named"), [(1.25, True), (0.8, True), (1.05, False)])
def test_a_run_that_is_resumed_on_a_machine_of_another_speed_says_so(sabotage, monkeypatch, times, is_named):
    run_honest("run")
    began = read_folder(Path("run")).run.machine.probe_s
    assert began > 0
    monkeypatch.setattr("rnnbench.launch.busy.fastest_probe", lambda cpus: times * began)
    notes = Notes()
    plan = read_folder(Path("run")).run
    resume(Path("run"), notes, more=MoreLaunches(plan.cases, 2), trust=True)
    assert any(f"takes {times:.2f} times as long" in text for text in notes.said) == is_named


def test_the_speed_at_the_beginning_is_that_of_the_processors_that_are_compared_later(sabotage, monkeypatch):
    """A run on a GPU is asked for one processor, and then timed on whichever is quiet."""
    probed = []

    def probe(cpus):
        probed.append(tuple(cpus))
        return 1.0

    others = (0, 1, 2)
    monkeypatch.setattr("rnnbench.session.on_quiet_processors", lambda method, device: replace(method, cpus=others))
    for place in ("rnnbench.session", "rnnbench.launch.busy"):
        monkeypatch.setattr(f"{place}.fastest_probe", probe)
    plan = rnnbench.make_plan(["sabotage/packed/honest"], [TINY], device="cpu", phases=["forward"])
    run = begin_run(plan, make_method(effort="quick"), Path("run"), Listener())
    assert describe_change(run.machine, run.method) == ""
    assert probed == [others, others]


def test_a_launch_on_a_quiet_machine_is_not(sabotage):
    speeds = []
    for attempt in range(3):
        launch = run_honest(f"run{attempt}")
        if not launch.noisy:
            return
        speeds += [probe_seconds(allowed_cpus()) for _ in range(4)]
    share = launch.others_cpu_s / launch.usage_s
    if describe_load() or share > 0.05:
        pytest.skip(f"this machine is not quiet: others take {share:.0%} of a processor")
    if max(speeds) > 1.1 * min(speeds):
        pytest.skip(f"its processors change their speed by themselves, by {max(speeds) / min(speeds) - 1:.0%}")
    pytest.fail(f"noisy on a quiet machine: {launch}")
