"""Rows on a GPU are timed on processors at full speed: which blocks count, where the worker moves, what is reported."""

import os
import threading
from types import SimpleNamespace

import msgspec
import pytest

import rnnbench
from made_up import make_case, make_launch, make_resolved_case
from rnnbench.domain.case import Method
from rnnbench.domain.noise import is_noisy
from rnnbench.domain.result import Launch
from rnnbench.launch.events import Sample, Samples, Sampling
from rnnbench.launch.exclusive import ExclusiveMachine
from rnnbench.launch.job import make_job
from rnnbench.launch.plausible import implausible
from rnnbench_worker.clock import MIN_SAMPLES, sample
from rnnbench_worker.clock import Runner as TimedRunner
from rnnbench_worker.program import Program
from rnnbench_worker.protocol import TURN_VARIABLE, wait_for_turn
from rnnbench_worker.quiet import QuietProcessors

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be pinned here")

METHOD = {"protocol": "adaptive", "timing": "throughput", "sample_seconds": 1.0, "precision_target": 0.05}


class Host:
    """Processors that are slowed down by others at certain blocks."""

    def __init__(self, monkeypatch, slow_at, cpus=4):
        self.blocks, self.moves = 0, []
        self._slow_at = slow_at
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(cpus))
        monkeypatch.setattr(os, "sched_setaffinity", self._pin)
        monkeypatch.setattr("rnnbench_worker.quiet.pulse_seconds", self._pulse)
        # Time that passes only in blocks: how busy the real machine is changes nothing.
        monkeypatch.setattr("rnnbench_worker.quiet.time", SimpleNamespace(perf_counter=lambda: 0.0))
        self._cpu = None

    def _pin(self, pid, cpus):
        if pid == 0:
            (self._cpu,) = cpus
        elif pid == os.getpid():
            self.moves.append(tuple(cpus))

    def _pulse(self):
        return 1.6 if self._slow_at(self._cpu, self.blocks) else 1.0


class Runner:
    def __init__(self, host, seconds=lambda block: 0.1, is_paced_by_device=False):
        self._host, self._seconds = host, seconds
        self.is_paced_by_device = is_paced_by_device
        self.by_device = 0.0

    def block(self, size):
        self._host.blocks += 1
        took = self._seconds(self._host.blocks)
        self.by_device += took
        return took


def watch(count=2, sample_seconds=1.0, full_speed_s=None):
    quiet = QuietProcessors(count=count, threshold=0.1, full_speed_s=full_speed_s, sample_seconds=sample_seconds)
    quiet.begin()
    return quiet


def test_a_worker_begins_on_the_fastest_processors(monkeypatch):
    host = Host(monkeypatch, lambda cpu, block: cpu in (0, 2))
    watch()
    assert set(host.moves) == {(1, 3)}


def test_a_block_counts_only_between_two_fast_pulses_and_the_worker_moves_away(monkeypatch):
    host = Host(monkeypatch, lambda cpu, block: cpu in (0, 1) and block == 3)
    runner, quiet = Runner(host, lambda block: 0.1 + block / 1000), watch()
    samples = sample(runner, dict(METHOD, precision_target=0.0), 0.1, quiet)
    assert host.moves[0] == (0, 1)
    assert host.moves[-1] == (2, 3)
    assert [round(1000 * seconds) for _, seconds in samples][:4] == [101, 102, 104, 105]
    assert runner.by_device == pytest.approx(sum(seconds for _, seconds in samples))  # the device's clock agrees
    told = quiet.fields()
    assert (told["quiet"], told["set_aside_blocks"], told["full_speed_s"]) == (True, 1, 1.0)
    assert told["set_aside_s"] >= 0.103
    assert (told["probe_before_s"], told["probe_after_s"], told["probe_best_s"]) == (1.0, 1.0, 1.0)


def test_a_worker_moves_to_the_next_processors_at_full_speed_without_trying_all(monkeypatch):
    host = Host(monkeypatch, lambda cpu, block: cpu in (0, 1, 3) and block == 1, cpus=16)
    quiet, tried = watch(), []
    pin = host._pin
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cpus: (pid == 0 and tried.extend(cpus), pin(pid, cpus)))
    host.blocks = 1
    quiet._move_away()
    assert tried == [2, 3, 4]
    assert host.moves[-1] == (2, 4)


def test_blocks_that_count_are_short_and_together_as_long_as_usual(monkeypatch):
    host = Host(monkeypatch, lambda cpu, block: False)
    samples = sample(Runner(host, lambda block: 0.03), METHOD, 0.01, watch())
    assert {size for size, _ in samples} == {3}
    assert 0.5 <= sum(seconds for _, seconds in samples) < 0.56


def test_one_lucky_pulse_is_not_full_speed(monkeypatch):
    host = Host(monkeypatch, lambda cpu, block: False)
    lucky = iter([0.5])
    monkeypatch.setattr("rnnbench_worker.quiet.pulse_seconds", lambda: next(lucky, 1.0))
    quiet = watch()
    assert quiet.fields()["full_speed_s"] == 1.0
    assert quiet.block(Runner(host), 1, enough=False) == 0.1
    assert quiet.fields()["set_aside_blocks"] == 0


def test_a_block_counts_no_more_when_processors_are_faster_than_usual(monkeypatch):
    """A launch while other tenants rest could not be compared with the others."""
    host = Host(monkeypatch, lambda cpu, block: False)
    runner, quiet = Runner(host, lambda block: 0.1 + block / 1000), watch(full_speed_s=1.0)
    usual = host._pulse
    monkeypatch.setattr("rnnbench_worker.quiet.pulse_seconds", lambda: 0.77 if host.blocks in (2, 3) else usual())
    samples = sample(runner, dict(METHOD, precision_target=0.0), 0.1, quiet)
    assert [round(1000 * seconds) for _, seconds in samples][:3] == [101, 105, 106]
    assert quiet.fields()["set_aside_blocks"] == 3


def test_a_worker_stays_off_processors_that_are_faster_than_usual(monkeypatch):
    host = Host(monkeypatch, lambda cpu, block: False)
    monkeypatch.setattr("rnnbench_worker.quiet.pulse_seconds", lambda: 0.77 if host._cpu in (0, 2) else 1.0)
    quiet = watch(full_speed_s=1.0)
    assert host.moves[-1] == (1, 3)
    assert quiet.fields()["full_speed_s"] == 0.77  # what this worker found: if others do, it is the usual speed


def test_what_counts_never_depends_on_the_time_of_the_block(monkeypatch):
    def kept(seconds):
        host = Host(monkeypatch, lambda cpu, block: block % 3 == 0)
        told = watch(sample_seconds=10.0)
        runner = Runner(host, seconds)
        return [told.block(runner, 1, True) == seconds(host.blocks) and host.blocks for _ in range(8)]

    assert kept(lambda block: 0.1) == kept(lambda block: 0.1 * (1 + block % 2))


def test_where_it_is_never_quiet_every_block_counts_and_the_launch_is_not_quiet(monkeypatch):
    host = Host(monkeypatch, lambda cpu, block: True)
    quiet = watch(full_speed_s=1.0)  # known from an earlier launch
    samples = sample(Runner(host), METHOD, 0.1, quiet)
    assert len(samples) == MIN_SAMPLES
    told = quiet.fields()
    assert told["quiet"] is False
    assert "probe_before_s" not in told
    assert 4.5 < told["set_aside_s"] < 5.5


def test_a_block_whose_pace_the_device_had_set_counts_on_slow_processors_too(monkeypatch):
    host = Host(monkeypatch, lambda cpu, block: block in (2, 3))
    quiet = watch()
    runner = Runner(host, lambda block: 0.1 + block / 1000, is_paced_by_device=True)
    samples = sample(runner, dict(METHOD, precision_target=0.0), 0.1, quiet)
    assert [round(1000 * seconds) for _, seconds in samples][:4] == [101, 102, 103, 104]
    told = quiet.fields()
    assert (told["quiet"], told["set_aside_blocks"], told["device_paced_blocks"]) == (True, 0, 3)
    assert (told["probe_before_s"], told["probe_after_s"]) == (1.0, 1.0)  # of those that were quiet


class Stopwatch:
    def start(self): ...

    def stop(self): ...

    def seconds(self):
        return 0.0


class Timed(Program):
    """So many seconds until a batch is handed over, and so many until it is done."""

    def __init__(self, clock, host, device, watch):
        self._clock, self._host, self._device, self._watch = clock, host, device, watch

    def feed(self, staged):
        return staged

    def train(self, batch):
        self._clock[0] += self._host

    def sync(self, handle):
        self._clock[0] += self._device

    def stopwatch(self):
        return self._watch


@pytest.mark.parametrize(
    ("host", "device", "watch", "expected"),
    [(1, 100, Stopwatch(), True), (30, 70, Stopwatch(), False), (100, 1, Stopwatch(), False), (1, 100, None, False)],
)
def test_the_device_sets_the_pace_where_the_host_waits_for_it(monkeypatch, host, device, watch, expected):
    """Not known of a framework whose other threads may still be feeding the device when its call returns."""
    clock = [0.0]
    monkeypatch.setattr("rnnbench_worker.clock.time", SimpleNamespace(perf_counter=lambda: clock[0]))
    runner = TimedRunner(Timed(clock, host, device, watch), "train", [0])
    assert runner.block(1) == host + device
    assert runner.is_paced_by_device is expected


def test_enough_samples_are_enough_when_it_stops_being_quiet(monkeypatch):
    host = Host(monkeypatch, lambda cpu, block: block > 7)
    quiet = watch()
    samples = sample(Runner(host, lambda block: 0.1 * (1 + block % 2)), dict(METHOD, precision_target=0.0), 0.1, quiet)
    assert len(samples) == 7
    assert quiet.fields()["quiet"] is True


def test_all_threads_of_the_process_move():
    before = os.sched_getaffinity(0)
    release = threading.Event()
    other = threading.Thread(target=release.wait)
    other.start()
    try:
        QuietProcessors(count=1, threshold=0.1, full_speed_s=None, sample_seconds=1.0).begin()
        masks = {frozenset(os.sched_getaffinity(thread)) for thread in (0, other.native_id)}
        assert len(masks) == 1
        assert len(masks.pop()) == 1
    finally:
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), before)
        release.set()
        other.join()


# --- in the driver --------------------------------------------------------------------------------------------


def test_only_rows_on_a_gpu_are_watched():
    method = Method(quiet_cpus=2)
    assert make_job("measure", make_resolved_case(make_case()), method, "")["quiet"] is None
    job = make_job("measure", make_resolved_case(make_case(device="cuda")), method, "", full_speed_s=0.5)
    assert job["quiet"] == {"count": 2, "threshold": 0.05, "full_speed_s": 0.5, "sample_seconds": 15.0}
    QuietProcessors(**job["quiet"])


def test_what_was_set_aside_is_part_of_the_time_that_passed():
    samples = Samples(samples=(Sample(1, 1.0),), quiet=True, set_aside_blocks=3, set_aside_s=2.0)
    assert implausible([Sampling(), samples], [0.0, 3.0]) == ""
    assert "passed" in implausible([Sampling(), samples], [0.0, 5.0])
    assert "passed" in implausible([Sampling(), msgspec.structs.replace(samples, set_aside_s=0.0)], [0.0, 3.0])


def test_all_launches_have_the_standard_of_those_before():
    machine = ExclusiveMachine()
    assert machine.full_speed_s is None
    machine.full_speeds += [*[0.77] * 3, *[1.0] * 5, *[1.3] * 4]  # other tenants rest for a minute, or are busy
    assert machine.full_speed_s == 1.0


def test_a_worker_that_waited_for_its_turn_gets_the_standard_of_then(monkeypatch):
    machine = ExclusiveMachine(ahead=2)
    for full_speed_s in (None, 0.00125):
        machine.full_speeds = [full_speed_s] if full_speed_s else []
        with machine.next(probes=False) as turn:
            reading = os.dup(turn.descriptor)
            turn.started(SimpleNamespace(suspend=lambda: None, resume=lambda: None))
            turn.warm()
        monkeypatch.setenv(TURN_VARIABLE, str(reading))
        assert wait_for_turn().full_speed_s == full_speed_s
        os.close(reading)


def test_a_launch_that_was_not_quiet_is_noisy():
    assert is_noisy(make_launch(make_case(), 1.0, quiet=False), 0.1)
    assert not is_noisy(make_launch(make_case(), 1.0, quiet=True), 0.1)


def test_a_watched_launch_from_the_driver_to_the_row(sabotage, monkeypatch):
    """On a CPU, as if it fed a GPU."""
    for place in ("launcher", "job"):
        monkeypatch.setattr(f"rnnbench.launch.{place}.is_watched", lambda case, method: bool(method.quiet_cpus))
    plan = rnnbench.make_plan(["sabotage/packed/honest"], ["ce-short[batch=3,hidden=4,steps=4]"], device="cpu")
    options = {"effort": "quick", "sample_seconds": 0.05, "warm_seconds": 0.05, "launches": 2}
    results = rnnbench.run_plan(plan, "run", quiet_cpus=1, **options)
    launches = [record for record in results.contents.records if isinstance(record, Launch)]
    assert [launch.outcome for launch in launches] == ["ok"] * 4
    for launch in launches:
        assert launch.quiet is not None
        assert launch.probe_best_s > 0
        assert launch.set_aside_s > 0  # the pulses themselves
