"""The records of a launch and of a verification, made from the events of fake workers."""

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from made_up import make_case, make_resolved_case
from rnnbench.domain.case import Method
from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.result import GpuState, Sample
from rnnbench.domain.workload import parameter_count
from rnnbench.launch import exclusive, launcher
from rnnbench.launch.events import Arrays, Built, Done, First, Hello, Memory, Samples, Sampling, Unseen, Warm
from rnnbench.launch.exclusive import ExclusiveMachine
from rnnbench.launch.launcher import launch_case
from rnnbench.launch.listener import Listener
from rnnbench.launch.worker import BoundedLog, WorkerResult
from rnnbench.verify import verifier
from rnnbench.verify.proofs import Proof, small_version
from rnnbench.verify.verifier import run_proof

CASE = make_case(phase="forward")
HELLO = Hello(import_s=0.5, versions={"toy": "1.0"}, device="cpu", device_name="a processor", threads=1)
RESOLVED = make_resolved_case(CASE)
PARAMETERS = parameter_count(RESOLVED.workload, RESOLVED.system.biases)
BUILT = Built(seconds=0.25, parameters=PARAMETERS, device="cpu")
SAMPLES = Samples((Sample(5, 0.5), Sample(5, 0.6)), steady=True)
ALL = [HELLO, BUILT, First(2.0), Warm(20, 3.0), Sampling(), SAMPLES, Memory(1000, None, "one kernel"), Done()]


def finished(*events, passed=1.1):
    """A worker that ended well; so many seconds passed by the driver's clock while it took samples."""
    arrivals = [100.0 + (passed if Sampling() in events[:place] else 0.0) for place in range(len(events))]
    return WorkerResult(
        events=list(events), outcome="ok", reason="", stage="", seconds=1.0, log=BoundedLog(), arrivals=arrivals
    )


@pytest.fixture(autouse=True)
def quiet_machine():
    """Here noise is made up, and judged as it is."""


@pytest.fixture
def launch(monkeypatch):
    """A launch by a worker that sends these events, between two probes of the machine."""

    def run(*events, probes=(1.0, 1.0), listener=None, passed=1.1):
        times = iter(probes)

        def run_worker(environment, job, variables, limit, on_event, turn):
            with turn:
                for event in events:
                    on_event(event)
                return finished(*events, passed=passed)

        monkeypatch.setattr(launcher, "run_worker", run_worker)
        monkeypatch.setattr(exclusive, "probe_seconds", lambda cpus: next(times))
        return launch_case(RESOLVED, Method(), Path("inputs.npz"), 2, 1, listener or Listener(), ExclusiveMachine())[0]

    return run


def test_a_launch_holds_everything_the_worker_said(launch):
    made = launch(*ALL)
    assert (made.case, made.round, made.attempt, made.outcome) == (CASE, 2, 1, "ok")
    assert (made.import_s, made.build_s, made.first_call_s) == (0.5, 0.25, 2.0)
    assert (made.warm_batches, made.warm_seconds) == (20, 3.0)
    assert (made.batches, made.seconds) == (10, 1.1)
    assert (made.peak_host_bytes, made.peak_device_bytes, made.how_it_ran) == (1000, None, "one kernel")
    assert (made.parameter_count, made.threads, made.versions) == (PARAMETERS, 1, {"toy": "1.0"})
    assert made.device_name == "a processor"


@pytest.mark.parametrize(
    ("probes", "noisy"),
    [((1.0, 1.0), False), ((1.0, 1.09), False), ((1.0, 1.11), True), ((1.09, 1.0), False), ((1.11, 1.0), True)],
)
def test_a_launch_is_noisy_when_the_machine_was_a_tenth_slower_before_or_after(launch, probes, noisy):
    made = launch(*ALL, probes=probes)
    assert made.noisy is noisy
    assert (made.probe_before_s, made.probe_after_s) == probes


@pytest.mark.parametrize(("after", "noisy"), [(1980, False), (1500, True), (None, False)])
def test_a_launch_is_noisy_when_the_clock_of_its_gpu_moved(launch, after, noisy):
    samples = Samples(
        (Sample(5, 0.5),), device_seconds=0.49, gpu_before=GpuState(sm_mhz=1980), gpu_after=GpuState(sm_mhz=after)
    )
    made = launch(*ALL[:4], Sampling(), samples, Memory(1000, None), Done(), passed=0.5)
    assert made.noisy is noisy
    assert made.device_seconds == 0.49
    assert made.gpu_before.sm_mhz == 1980


def test_what_the_samples_took_of_the_processors_is_kept(launch):
    samples = Samples((Sample(5, 0.5),), usage_s=0.6, cpu_s=0.5, involuntary_switches=140, others_cpu_s=0.3)
    made = launch(*ALL[:5], samples, *ALL[6:])
    assert (made.usage_s, made.cpu_s, made.involuntary_switches, made.others_cpu_s) == (0.6, 0.5, 140, 0.3)
    assert made.probe_best_s == 1.0
    assert made.noisy


def test_a_listener_is_told_each_stage(launch):
    class StageListener(Listener):
        def __init__(self):
            self.stages = []

        def stage(self, case, stage):
            self.stages.append(stage)

    listener = StageListener()
    launch(*ALL, listener=listener)
    assert listener.stages == ["build", "first call", "warm-up", "waiting", "sampling", "checking", "end", "end"]


@pytest.mark.parametrize("passed", [0.9, 1.3, 60.0])
def test_samples_that_the_drivers_own_clock_contradicts_are_not_believed(launch, passed):
    made = launch(*ALL, passed=passed)
    assert made.outcome == "failed"
    assert made.reason == f"its samples add up to 1.1 s, but {passed:.3g} s passed while it took them"


@pytest.mark.parametrize("passed", [1.06, 1.1, 1.17])
def test_a_driver_that_was_woken_late_is_no_reason_to_disbelieve(launch, passed):
    assert launch(*ALL, passed=passed).outcome == "ok"


def test_another_number_of_parameters_is_a_failure(launch):
    made = launch(HELLO, Built(seconds=0.25, parameters=PARAMETERS - 1, device="cpu"), *ALL[2:])
    assert made.reason == f"it has {PARAMETERS - 1:,} parameters, and the workload has {PARAMETERS:,}"


@pytest.mark.parametrize(
    ("unseen", "reason"),
    [
        (Unseen((0.1, 0.5), seen_s=0.1, left_over_s=0.01, read_s=0.01), ""),
        (Unseen((0.5, 0.26), seen_s=0.1, left_over_s=0.01, read_s=0.01), "a batch that it had never seen took 0.26 s"),
        (Unseen((0.5, 0.26), seen_s=0.13, left_over_s=0.01, read_s=0.01), ""),
        (Unseen((0.1, 0.1), seen_s=0.1, left_over_s=0.2, read_s=0.01), "work was left over when its clock stopped"),
        (Unseen((0.1, 0.1), seen_s=0.1, left_over_s=0.2, read_s=0.05), ""),
    ],
)
def test_unseen_batches_and_the_last_result_take_no_longer_than_the_samples_say(launch, unseen, reason):
    made = launch(*ALL[:6], unseen, *ALL[6:])
    assert (made.seen_s, made.unseen_s) == (unseen.seen_s, unseen.seconds)
    assert made.reason.startswith(reason)
    assert made.outcome == ("failed" if reason else "ok")


def test_done_without_samples_is_a_failure(launch):
    made = launch(HELLO, BUILT, Done())
    assert (made.outcome, made.reason) == ("failed", "it said it was done, but sent no samples")


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([Hello(import_s=0, versions={}, device="cuda"), *ALL[1:]], "asked for cpu, but it ran on cuda"),
        ([HELLO, Built(seconds=0, parameters=7, device="cuda"), *ALL[2:]], "asked for cpu, but it ran on cuda"),
        ([Hello(import_s=0, versions={}, device="cpu", threads=8), *ALL[1:]], "asked for 1 threads, but it has 8"),
    ],
)
def test_a_worker_that_used_another_device_or_number_of_threads_has_failed(launch, events, reason):
    made = launch(*events)
    assert (made.outcome, made.reason) == ("failed", reason)


def test_a_worker_that_cannot_count_its_threads_is_accepted(launch):
    assert launch(Hello(import_s=0, versions={}, device="cpu", threads=None), *ALL[1:]).outcome == "ok"


@pytest.fixture
def verify(monkeypatch):
    """A verification by a worker that sends these events."""

    def run(*events):
        def worker(environment, job, *others):
            moved = [msgspec.structs.replace(each, path=into(job["arrays"], each.path)) for each in events]
            return finished(HELLO, BUILT, *moved, Done())

        def into(folder, path):
            return shutil.copy(path, folder) if Path(path).exists() else f"{folder}/nothing"

        monkeypatch.setattr(verifier, "run_worker", worker)
        proof = Proof((make_resolved_case(CASE, workload=small_version(CATALOG["ce-short"])),))
        (found,) = run_proof(proof, Method())
        return found.verdict, found.reason

    return run


def test_a_verification_without_arrays_has_failed(verify):
    assert verify() == ("failed", "it said it was done, but sent no arrays")


@pytest.mark.parametrize(
    "kind", ["nothing there", "rubbish", "a torn archive", "objects", "void", "strings", "complex"]
)
def test_arrays_that_cannot_be_read_are_a_failure_of_that_worker_and_of_nothing_else(verify, tmp_path, kind):
    path = tmp_path / "forward.npz"
    if kind == "rubbish":
        path.write_bytes(b"rubbish")
    elif kind == "a torn archive":
        np.savez(path, some=np.zeros(1000))
        path.write_bytes(path.read_bytes()[:500])
    elif kind == "objects":
        np.savez(path, **{"logits/0": np.array([{"never": "unpickled"}], dtype=object)})
    elif kind in ("void", "strings", "complex"):
        odd = {"void": np.zeros(2, "V2"), "strings": np.array(["a"]), "complex": np.zeros(2, complex)}[kind]
        np.savez(path, **{"logits/0": odd})
    verdict, reason = verify(Arrays("forward", str(path)))
    assert verdict == "failed"
    assert reason.startswith("its arrays cannot be read: ")


def test_arrays_that_lack_a_quantity_are_wrong(verify, tmp_path):
    np.savez(tmp_path / "forward.npz", something=np.zeros(3))
    verdict, reason = verify(Arrays("forward", str(tmp_path / "forward.npz")))
    assert verdict == "wrong"
    assert reason.startswith("logits of batch 0: not finite")
