"""What is known before a run: how long it takes, whether it fits the memory, and that a long one is agreed to."""

import msgspec
import pytest

import rnnbench.cli.answers
from analysis_runs import make_limit
from made_up import make_case
from rnnbench.domain.case import Method
from rnnbench.domain.catalog import CATALOG, parse_workload
from rnnbench.domain.workload import flops, least_memory, parameter_count
from rnnbench.estimate import estimate_run, keep_rate, known_rate
from rnnbench.plan import Plan, within_memory
from test_cli import HONEST, QUICKLY

METHOD = Method(threads=2, verify=False, launches=1, memory_bytes=10**10)
LONG = "bi-ctc-long"


def plan_of(*names, **case):
    workloads = {name: parse_workload(name) for name in names}
    cases = tuple(make_case(workload=name, **case) for name in names)
    return Plan(cases=cases, left_out=(), workloads=workloads, systems={}, specs={})


def typical(*names, method=METHOD):
    return estimate_run(plan_of(*names), method).typical_s


# --- time -----------------------------------------------------------------------------------------------


def test_an_estimate_follows_the_work_of_a_batch(private_folders):
    assert typical("ce-short", "ce-long") == pytest.approx(typical("ce-short") + typical("ce-long"))
    fixed = msgspec.structs.replace(METHOD, protocol="2019", limit_seconds=1e6)
    short, long = typical("ce-short", method=fixed), typical("ce-long", method=fixed)
    work = {name: flops(CATALOG[name], "train") for name in ("ce-short", "ce-long")}
    assert (long - short) / (work["ce-long"] - work["ce-short"]) == pytest.approx(61 / (0.4 * 32e9), rel=1e-6)


def test_no_launch_is_estimated_above_its_time_limit(private_folders):
    assert typical(LONG) == METHOD.limit_seconds


def test_once_known_this_machines_rate_is_used(private_folders):
    guessed = estimate_run(plan_of("ce-long"), METHOD)
    assert not guessed.rate_measured
    keep_rate(make_limit(flops_per_s=32e10), threads=2)  # ten times what is guessed for two threads
    measured = estimate_run(plan_of("ce-long"), METHOD)
    assert measured.rate_measured
    assert measured.typical_s < guessed.typical_s
    assert known_rate("cpu", 2) == 32e10
    assert known_rate("cpu", 1) is None  # another number of threads is another rate
    keep_rate(make_limit(flops_per_s=1e10), threads=2)  # by a framework with slow products
    assert known_rate("cpu", 2) == 32e10


@pytest.mark.parametrize("fields", [{"noisy": True}, {"outcome": "failed"}, {"products": ()}, {"precision": "bf16"}])
def test_a_rate_that_was_not_measured_well_is_not_kept(private_folders, fields):
    keep_rate(make_limit(**fields), threads=2)
    assert known_rate("cpu", 2) is None


def test_a_damaged_rate_is_no_rate(private_folders):
    keep_rate(make_limit(), threads=2)
    (path,) = (private_folders / "cache" / "rnnbench" / "rates").iterdir()
    path.write_text("many")
    assert known_rate("cpu", 2) is None


def test_a_run_keeps_the_rate_that_it_measured(sabotage, call, monkeypatch):
    def measured(resolved, method):
        return make_limit(resolved.case, flops_per_s=5e10)

    monkeypatch.setattr("rnnbench.session.launch_limit", measured)
    arguments = ("run", HONEST, *QUICKLY, "--phase", "forward", "--no-verify", "--threads", "1")
    assert "a guessed rate" in call(*arguments, "--dry-run").out
    assert call(*arguments).code == 0
    assert "at this machine's rate" in call(*arguments, "--dry-run").out


# --- consent --------------------------------------------------------------------------------------------

HOURS = ("run", HONEST, "-w", LONG, "--device", "cpu", "--launches", "20")


def test_a_run_of_hours_is_refused_where_nobody_can_be_asked(sabotage, call):
    answer = call(*HOURS)
    assert answer.code == 2
    assert "2 cases take about " in answer.err
    assert "give --yes" in answer.err
    assert not (sabotage / "runs").exists()
    assert call(*HOURS, "--dry-run").code == 0


@pytest.mark.parametrize("consents", [True, False])
def test_a_run_of_hours_asks_first(sabotage, call, monkeypatch, consents):
    asked, begun = [], []

    def confirm(question, **_):
        asked.append(question)
        return consents

    def begin(*arguments, **_):
        begun.append(arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr("rnnbench.cli.answers.typer.confirm", confirm)
    monkeypatch.setattr("rnnbench.session.run", begin)
    monkeypatch.setattr(rnnbench.cli.answers, "sys", Terminal)
    assert call(*HOURS).code == (130 if consents else 2)
    assert (asked, len(begun)) == (["Begin?"], 1 if consents else 0)
    assert call(*HOURS, "--yes").code == 130
    assert len(asked) == 1


class Terminal:
    """`sys`, in front of a user."""

    class stdin:
        isatty = staticmethod(lambda: True)

    stderr = stdin


def test_a_short_run_asks_nothing(sabotage, call, monkeypatch):
    monkeypatch.setattr("rnnbench.cli.answers.typer.confirm", None)
    monkeypatch.setattr(rnnbench.cli.answers, "sys", Terminal)
    assert call("run", HONEST, *QUICKLY, "--phase", "forward", "--no-verify").code == 0


# --- memory ---------------------------------------------------------------------------------------------


def test_the_least_memory_is_below_what_rows_were_seen_to_need():
    # The leanest rows of results/cpu-2-cores-ptb-lm and -ce-short, less what a framework takes.
    assert 4 * 4 * parameter_count(CATALOG["ptb-lm"]) < least_memory(CATALOG["ptb-lm"], "train") < 1.2e9
    assert least_memory(CATALOG["ce-short"], "train") < 0.3e9
    assert least_memory(CATALOG["ce-short"], "forward") < least_memory(CATALOG["ce-short"], "train")


def test_cases_that_cannot_fit_are_left_out_with_the_bytes_they_need():
    large = "ce-short[batch=1000000,steps=1000]"
    plan = within_memory(plan_of("ce-short", large), METHOD)
    assert [case.workload for case in plan.cases] == ["ce-short"]
    (left,) = plan.left_out
    needed = least_memory(parse_workload(large), "train")
    assert left.reason == f"it needs at least {needed / 1e9:,.0f} GB of memory, and there are 10.0 GB"


def test_where_the_memory_is_not_known_nothing_is_left_out(monkeypatch):
    monkeypatch.setattr("rnnbench.plan.find_gpus", lambda: ())
    assert len(within_memory(plan_of("ce-short", device="cuda"), METHOD).cases) == 1


def test_nothing_is_allocated_for_what_cannot_fit(sabotage, call, monkeypatch):
    monkeypatch.setattr("rnnbench.session.write_timed_inputs", None)
    answer = call("run", HONEST, "-w", "ce-short[batch=1000000,steps=1000000]", "--device", "cpu", "--yes")
    assert answer.code == 2
    assert "it needs at least " in answer.err
    assert not (sabotage / "runs").exists()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "rnnbench: there is not enough memory\n"),
        (
            MemoryError("Unable to allocate 7.45 GiB"),
            "rnnbench: there is not enough memory: Unable to allocate 7.45 GiB\n",
        ),
        (OSError(28, "No space left on device", "/tmp/x"), "rnnbench: No space left on device: /tmp/x\n"),
        (OSError("odd"), "rnnbench: odd\n"),
    ],
)
def test_what_the_system_refuses_is_said_without_a_traceback(sabotage, call, monkeypatch, error, said):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr("rnnbench.session.write_timed_inputs", refuse)
    answer = call("run", HONEST, *QUICKLY, "--phase", "forward", "--no-verify")
    assert answer.code == 2
    assert said in answer.err
    assert "Traceback" not in answer.err
