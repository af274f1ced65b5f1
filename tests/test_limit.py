"""The machine's limit: how its rates are measured and recorded, when they are needed, and how rows use them."""

import msgspec
import pytest

from analysis_runs import make_limit
from made_up import make_case, make_contents, make_launch, make_proof, make_resolved_case
from rnnbench.analysis.limit import find_peaks, least_time
from rnnbench.analysis.rows import make_rows
from rnnbench.domain.case import Method
from rnnbench.domain.catalog import CATALOG, parse_workload
from rnnbench.domain.result import Limit, Timed
from rnnbench.domain.workload import compulsory_bytes, flops
from rnnbench.launch import exclusive
from rnnbench.launch import launcher as limits
from rnnbench.launch.events import Done, Hello, Rates, parse_event
from rnnbench.launch.launcher import launch_limit, limits_needed
from rnnbench.launch.worker import BoundedLog, WorkerResult
from rnnbench_worker import limit as worker_limit

# --- in the worker: fake operators on a machine whose rates are known -----------------------------------------


class FakeMachine:
    """Time passes only during products and copies. Small products do not reach its rate, as on a real machine."""

    def __init__(self, flops_per_s, bytes_per_s, overhead=1e-5):
        self.now, self.calls, self.sent = 0.0, 0, []
        self.flops_per_s, self.bytes_per_s, self.overhead = flops_per_s, bytes_per_s, overhead
        self.slowness = lambda calls: 1.0  # of the n-th call

    def rates(self, job):
        return {
            "product": lambda size: lambda: self.work(2 * size**3 / self.flops_per_s),
            "copy": lambda count: lambda: self.work(2 * 4 * count / self.bytes_per_s),
            "sync": lambda handle: None,
        }

    def work(self, seconds):
        self.calls += 1
        self.now += (seconds + self.overhead) * self.slowness(self.calls)

    def send(self, event, **fields):
        self.sent.append(msgspec.json.decode(msgspec.json.encode({"event": event, **fields})))

    def measure(self, monkeypatch):
        monkeypatch.setattr(worker_limit.time, "perf_counter", lambda: self.now)
        worker_limit.measure_limit({}, self, self)
        return parse_event(msgspec.json.encode(self.sent[0])) if self.sent else None


def best(timed):
    return max(one.amount / one.seconds for one in timed)


@pytest.mark.parametrize(("flops_per_s", "largest"), [(20e9, 1024), (1e11, 2048), (5e13, 16384), (1e15, 16384)])
def test_sizes_grow_until_a_product_takes_long_and_the_best_rate_is_the_machines(monkeypatch, flops_per_s, largest):
    machine = FakeMachine(flops_per_s, 1e10)
    rates = machine.measure(monkeypatch)
    assert rates.products[-1].amount == 2 * largest**3
    assert best(rates.products) == pytest.approx(flops_per_s, rel=0.01)
    assert best(rates.copies) == pytest.approx(1e10, rel=0.01)
    assert machine.now < 5


def test_what_disturbs_some_blocks_does_not_lower_the_rate(monkeypatch):
    machine = FakeMachine(1e11, 1e10)
    machine.slowness = lambda calls: 3.0 if calls % 7 < 3 else 1.0
    quiet, disturbed = FakeMachine(1e11, 1e10).measure(monkeypatch), machine.measure(monkeypatch)
    assert best(disturbed.products) > best(quiet.products) / 3 * 1.5


@pytest.mark.parametrize("framework", [object(), type("Offers", (), {"rates": lambda self, job: None})()])
def test_a_framework_that_offers_none_sends_nothing(framework):
    channel = FakeMachine(1, 1)
    worker_limit.measure_limit({}, framework, channel)
    assert channel.sent == []


@pytest.mark.parametrize(
    "rates", [{"products": [[8, 0]]}, {"products": [[8, -1]]}, {"products": [[0, 1]]}, {"products": []}, {"copies": []}]
)
def test_rates_that_cannot_be_are_no_event(rates):
    sent = {"event": "rates", "products": [[8, 1.0]], "copies": [[8, 1.0]]}
    assert isinstance(parse_event(msgspec.json.encode(sent)), Rates)
    with pytest.raises((msgspec.MsgspecError, ValueError)):
        parse_event(msgspec.json.encode({**sent, **rates}))


# --- in the driver ---------------------------------------------------------------------------------------------

CASE = make_case()
HELLO = Hello(import_s=0.5, versions={"toy": "1.0"}, device="cpu", device_name="a processor", threads=1)
RATES = Rates(products=(Timed(100, 2.0), Timed(900, 3.0)), copies=(Timed(80, 2.0), Timed(50, 1.0)))


@pytest.fixture
def launch(monkeypatch):
    """The record of a worker that sends these events, between two probes of the machine."""

    def run(*events, probes=(1.0, 1.0), **result):
        times, jobs = iter(probes), []
        how = {"outcome": "ok", "reason": "", "stage": "", "seconds": 1.0, "log": BoundedLog(), **result}

        def run_worker(environment, job, variables, limit, turn):
            jobs.append(job)
            with turn:
                return WorkerResult(events=list(events), **how)

        monkeypatch.setattr(limits, "run_worker", run_worker)
        monkeypatch.setattr(exclusive, "probe_seconds", lambda cpus: next(times))
        made = launch_limit(make_resolved_case(CASE), Method(threads=1))
        assert [job["mode"] for job in jobs] == ["limit"]
        return made

    return run


def test_a_record_holds_the_rates_and_the_best_of_each_is_taken(launch):
    limit = launch(HELLO, RATES, Done())
    assert (limit.environment, limit.device, limit.precision) == ("toy-1.0", "cpu", "fp32")
    assert (limit.outcome, limit.reason, limit.noisy) == ("ok", "", False)
    assert (limit.products, limit.copies) == (RATES.products, RATES.copies)
    assert (limit.flops_per_s, limit.bytes_per_s) == (300.0, 50.0)
    assert (limit.versions, limit.device_name, limit.threads) == ({"toy": "1.0"}, "a processor", 1)
    assert msgspec.json.decode(msgspec.json.encode(limit), type=Limit) == limit
    assert launch(HELLO, RATES, Done(), probes=(1.0, 1.2)).noisy


def test_rates_from_another_device_are_not_believed(launch):
    elsewhere = msgspec.structs.replace(HELLO, device="cuda")
    limit = launch(elsewhere, RATES, Done())
    assert (limit.outcome, limit.reason) == ("failed", "asked for cpu, but it ran on cuda")
    assert (limit.products, limit.flops_per_s, limit.bytes_per_s) == ((), None, None)


def test_a_framework_that_does_not_name_its_rates_is_not_started(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "run_worker", lambda *args, **options: pytest.fail("a worker was started"))
    (tmp_path / "__init__.py").write_text("from .settings import describe\n")
    resolved = make_resolved_case(CASE)
    manifest = msgspec.structs.replace(resolved.manifest, folder=str(tmp_path))
    resolved = msgspec.structs.replace(resolved, manifest=manifest)
    limit = launch_limit(resolved, Method(threads=1))
    assert (limit.outcome, limit.products, limit.key) == ("ok", (), make_limit(CASE).key)
    assert limit.reason == f"{manifest.title} has no code that measures the limit"


def test_a_failure_keeps_its_reason(launch):
    limit = launch(HELLO, outcome="timeout", reason="over 5 s during build", stage="build")
    assert (limit.outcome, limit.reason, limit.stage) == ("timeout", "over 5 s during build", "build")


def test_one_launch_for_each_environment_device_and_precision():
    cases = [
        make_case(execution, phase=phase, device=device, precision=precision)
        for execution in ("eager", "script")
        for phase in ("forward", "train")
        for device in ("cpu", "cuda")
        for precision in ("fp32", "bf16")
    ]
    cases.append(msgspec.structs.replace(CASE, environment="toy-2.0"))
    needed = limits_needed(cases, [])
    assert len(needed) == len({(one.environment, one.device, one.precision) for one in needed}) == 6  # tf32 too
    known, failed = make_limit(needed[0]), make_limit(needed[1], outcome="failed", products=(), copies=())
    assert limits_needed(cases, [known, failed]) == needed[2:]
    without_rates = make_limit(needed[0], products=(), copies=())
    others = [case for case in needed if case.environment != needed[0].environment]
    assert limits_needed(cases, [without_rates]) == others  # it was asked once, and has nothing to offer


def test_on_a_gpu_other_precisions_are_measured_by_one_environment():
    first = make_case(device="cuda")
    second = msgspec.structs.replace(first, environment="toy-2.0")

    def keys(*limits):
        return [(one.environment, one.precision) for one in limits_needed([first, second], limits)]

    own = [(first.environment, "fp32"), ("toy-2.0", "fp32")]
    assert keys() == [*own, (first.environment, "tf32"), (first.environment, "bf16")]
    silent = make_limit(first, products=(), copies=())
    assert keys(silent) == [("toy-2.0", "fp32"), ("toy-2.0", "tf32"), ("toy-2.0", "bf16")]
    tf32 = make_limit(msgspec.structs.replace(second, precision="tf32"))
    assert keys(silent, tf32) == [("toy-2.0", "fp32"), ("toy-2.0", "bf16")]


# --- in the rows -----------------------------------------------------------------------------------------------


def rows_with(*records, case=CASE, wall=2.0):
    return make_rows(make_contents([case], make_proof(case), make_launch(case, wall, wall), *records))


def test_the_limit_is_the_larger_of_the_two_times():
    work, traffic = flops(CATALOG["ce-short"], "train"), compulsory_bytes(CATALOG["ce-short"], "train")
    peak = find_peaks([make_limit(flops_per_s=1e10, bytes_per_s=1e9)])["", "cpu", "fp32"]
    slow_products = least_time(CATALOG["ce-short"], "train", "fp32", peak)
    assert (slow_products.seconds, slow_products.bound_by) == (work / 1e10, "products")
    peak = find_peaks([make_limit(flops_per_s=1e15, bytes_per_s=1e9)])["", "cpu", "fp32"]
    slow_memory = least_time(CATALOG["ce-short"], "train", "fp32", peak)
    assert (slow_memory.seconds, slow_memory.bound_by) == (traffic / 1e9, "memory")


def test_every_row_says_what_share_of_the_limit_it_reaches():
    (row,) = rows_with(make_limit(flops_per_s=1e10, bytes_per_s=1e12))
    least = flops(CATALOG["ce-short"], "train") / 1e10
    assert row.limit_s == pytest.approx(least)
    assert row.limit_share == pytest.approx(least / 2)
    walls = (row.wall_high_s, row.wall_low_s)
    assert (row.limit_share_low, row.limit_share_high) == pytest.approx([least / wall for wall in walls])


def test_the_limit_is_the_machines_not_the_frameworks():
    """The best product and the best copy of any framework count, but not those of another device or precision."""
    other = msgspec.structs.replace(CASE, environment="toy-2.0")
    peaks = find_peaks(
        [
            make_limit(flops_per_s=1e10, bytes_per_s=9e9, noisy=True),
            make_limit(other, flops_per_s=3e10, bytes_per_s=2e9),
            make_limit(make_case(device="cuda"), flops_per_s=1e15),
            make_limit(make_case(precision="bf16"), flops_per_s=1e15),
        ]
    )
    peak = peaks["", "cpu", "fp32"]
    assert (peak.flops_per_s, peak.flops_environment) == (3e10, "toy-2.0")
    assert (peak.bytes_per_s, peak.bytes_environment) == (9e9, "toy-1.0")
    assert peak.noisy
    assert set(peaks) == {("", "cpu", "fp32"), ("", "cuda", "fp32"), ("", "cpu", "bf16")}


@pytest.mark.parametrize(
    "records",
    [[], [make_limit(outcome="failed", products=(), copies=())], [make_limit(make_case(device="cuda"))]],
    ids=["an old run", "failed", "another device"],
)
def test_without_rates_there_is_no_share(records):
    (row,) = rows_with(*records)
    assert (row.wall_s, row.limit_s, row.limit_share) == (2.0, None, None)


def test_padded_steps_are_no_work():
    peak = find_peaks([make_limit()])["", "cpu", "fp32"]
    padded = least_time(parse_workload("bi-ctc-long[shortest=1000]"), "train", "fp32", peak)
    real = least_time(CATALOG["bi-ctc-long"], "train", "fp32", peak)
    assert real.flops / padded.flops == 0.75
    assert real.bytes < padded.bytes
