"""Every broken system must be detected, with the right status and reason, and the run must continue."""

import pytest

import rnnbench
from rnnbench.domain.result import Launch, Limit
from rnnbench.launch.listener import Listener
from rnnbench.session import resume
from rnnbench.store import read_folder

TINY = "ce-short[batch=3,hidden=4,steps=4]"
TINY_CTC = "bi-ctc-long[batch=3,hidden=4,labels=2,layers=1,steps=6]"

WRONG = {
    "stale-state": "logits",
    "gate-order": "logits",
    "missing-gradient": "gradient of layer0.fwd.u: not finite",
    "scaled-gradient": "gradient of",
    "skipped-update": "after 3 updates",
    "wrong-reduction": "loss of batch 0",
    "cached-output": "batch 1",
    "nan": "not finite",
}


def run(systems, workload=TINY, **method):
    plan = rnnbench.make_plan([f"sabotage/packed/{name}" for name in systems], [workload], device="cpu")
    quick = {"effort": "quick", "sample_seconds": 0.05, "warm_seconds": 0.05}
    return rnnbench.run_plan(plan, "run", **quick, **method)


def reasons(results, system):
    return {row.phase: (row.status, row.reason) for row in results.rows if row.execution == system}


def test_wrong_systems_are_found_wrong_and_are_never_best(sabotage):
    results = run(["honest", *WRONG])
    for system, quantity in WRONG.items():
        found = reasons(results, system)
        wrong = [reason for status, reason in found.values() if status == "wrong"]
        assert wrong, f"{system} was not found wrong: {found}"
        assert any(quantity in reason for reason in wrong), f"{system}: {wrong}"
        assert all("tolerance" in reason for reason in wrong)
    for row in results.rows:
        assert row.wall_s is not None  # a wrong row keeps its time
        assert row.status == "verified" or not row.best
    assert sorted(row.phase for row in results.rows if row.best) == ["forward", "train"]


def test_a_skipped_update_is_seen_even_at_the_tolerance_of_bf16(sabotage):
    plan = rnnbench.make_plan(["sabotage/packed/skipped-update"], [TINY], device="cpu", precisions=["bf16"])
    found = {one.case.phase: one for one in rnnbench.verify_plan(plan).verifications}
    assert found["forward"].verdict == "verified"
    assert found["train"].verdict == "wrong"
    assert found["train"].reason.startswith("updates of")


def test_a_network_that_ignores_lengths_is_found_wrong(sabotage):
    results = run(["honest", "ignored-lengths"], TINY_CTC)
    assert reasons(results, "honest") == {"forward": ("verified", ""), "train": ("verified", "")}
    assert {status for status, _ in reasons(results, "ignored-lengths").values()} == {"wrong"}


FAILURES = {
    "crash": "killed by SIGSEGV during first call",
    "silent-exit": "exited with code 0 without an error message during first call",
    "malformed": "line 3 of the protocol is not an event",
    "impossible-samples": "line 3 of the protocol is not an event",
    "elsewhere": "asked for cpu, but it ran on cuda",
    "more-threads": "asked for 1 threads, but it has 2",
    "raise": "ValueError: a message of its own: with a second line",
}


def test_failures_have_their_reason_and_the_run_continues(sabotage):
    results = run([*FAILURES, "honest"], verify=False, threads=1)
    for system, reason in FAILURES.items():
        for status, found in reasons(results, system).values():
            assert status == "failed"
            assert reason in found
    assert {status for status, _ in reasons(results, "honest").values()} == {"unverified"}


def test_a_verification_that_crashes_leaves_the_row_unverified_or_failed(sabotage):
    results = run(["crash", "honest"])
    assert {status for status, _ in reasons(results, "crash").values()} == {"failed"}
    assert {status for status, _ in reasons(results, "honest").values()} == {"verified"}


def test_a_hanging_worker_times_out_with_its_stage(sabotage):
    results = run(["hang", "honest"], verify=False, limit_seconds=3)
    for status, reason in reasons(results, "hang").values():
        assert status == "timeout"
        assert reason == "over 3 s during first call"
    assert {status for status, _ in reasons(results, "honest").values()} == {"unverified"}


def test_a_worker_that_takes_all_memory_is_stopped_by_its_limit(sabotage):
    results = run(["memory", "honest"], verify=False, memory_gb=1.0)
    for status, reason in reasons(results, "memory").values():
        assert status == "failed"
        assert reason.startswith("out of memory")
    assert {status for status, _ in reasons(results, "honest").values()} == {"unverified"}


def test_noise_on_standard_output_does_no_harm_and_is_kept(sabotage):
    results = run(["noise"])
    assert {status for status, _ in reasons(results, "noise").values()} == {"verified"}
    logs = sorted((sabotage / "run" / "logs").iterdir())
    assert logs
    for log in logs:
        text = log.read_text()
        assert "noise" in text
        assert "on both" in text
        assert len(text) < 1_000_000


def test_a_declared_gap_is_unsupported_not_a_crash(sabotage):
    plan = rnnbench.make_plan(["sabotage/packed/no-ctc", "sabotage/packed/honest"], [TINY_CTC], device="cpu")
    assert {left.reason for left in plan.left_out} == {"declared: this one has no CTC"}
    results = rnnbench.run_plan(plan, "run", effort="quick", sample_seconds=0.05, warm_seconds=0.05)
    assert {status for status, _ in reasons(results, "no-ctc").values()} == {"unsupported"}


def test_verify_reports_the_same_verdicts(sabotage):
    plan = rnnbench.make_plan(["sabotage/packed/honest", "sabotage/packed/scaled-gradient"], [TINY], device="cpu")
    verified = rnnbench.verify_plan(plan)
    verdicts = {(one.case.system, one.case.phase): one.verdict for one in verified.verifications}
    assert verdicts == {
        ("sabotage/packed/honest", "forward"): "verified",
        ("sabotage/packed/honest", "train"): "verified",
        ("sabotage/packed/scaled-gradient", "forward"): "verified",
        ("sabotage/packed/scaled-gradient", "train"): "wrong",
    }


def test_a_verification_is_kept_until_the_source_changes(sabotage, monkeypatch):
    plan = rnnbench.make_plan(["sabotage/packed/honest"], [TINY], device="cpu")
    assert not any(one.cached for one in rnnbench.verify_plan(plan).verifications)
    assert all(one.cached for one in rnnbench.verify_plan(plan).verifications)
    monkeypatch.setattr("rnnbench.verify.verifier.reference_sources", lambda: "another")
    assert not any(one.cached for one in rnnbench.verify_plan(plan).verifications)


@pytest.mark.parametrize("system", ["crash", "hang"])
def test_no_worker_is_left_running(sabotage, system):
    import os
    import subprocess

    run([system], verify=False, limit_seconds=2)
    children = subprocess.run(["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True).stdout
    assert "rnnbench_worker" not in children


def test_failed_rows_keep_the_end_of_their_log(sabotage):
    run(["raise"], verify=False)
    contents = read_folder(sabotage / "run")
    launches = [record for record in contents.records if isinstance(record, Launch)]
    assert len(launches) == 2
    assert all("second line" in launch.traceback for launch in launches)


LIMITS = {"limit-crash": "killed by SIGSEGV during build", "limit-raise": "RuntimeError: no product here"}


@pytest.mark.parametrize("system", LIMITS)
def test_a_limit_that_cannot_be_measured_has_its_reason_and_the_run_continues(sabotage, system):
    results = run([system])
    assert {status for status, _ in reasons(results, system).values()} == {"verified"}
    assert {row.limit_share for row in results.rows} == {None}
    assert [(one.outcome, one.reason) for one in limits(results.contents)] == [("failed", LIMITS[system])]
    # A resumed run does not try again, unless it is asked to.
    resumed = resume(sabotage / "run", Listener())
    assert len(limits(resumed)) == 1
    retried = resume(sabotage / "run", Listener(), retry_failed=True)
    assert len(limits(retried)) == 2


def test_a_framework_that_cannot_measure_the_limit_is_asked_once(sabotage):
    results = run(["honest"], verify=False)
    (limit,) = limits(results.contents)
    assert (limit.outcome, limit.products, limit.copies) == ("ok", (), ())
    assert limit.reason == "Sabotage has no code that measures the limit"
    assert len(limits(resume(sabotage / "run", Listener(), retry_failed=True))) == 1


def limits(contents):
    return [record for record in contents.records if isinstance(record, Limit)]
