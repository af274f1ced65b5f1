"""The timed program itself is proved: what is right on the small version only, or timed by a trick, is found."""

import pytest

import rnnbench
from rnnbench.domain.result import Launch
from rnnbench.domain.system import PHASES

#: Larger than the small version.
FULL = "ce-short[batch=12,hidden=16,steps=60]"
CTC = "bi-ctc-long[batch=12,features=9,hidden=16,labels=5,layers=1,shortest=30,steps=60]"
DEEP = "ce-short[batch=7,hidden=8,layers=4,steps=10]"

WRONG = {
    "shorter-sequence": ("logits of", "updates of"),
    "smaller-batch": ("logits of", ""),
    "cut-backpropagation": (None, "updates of layer0.fwd.u"),
    "low-precision": ("logits of", "updates of"),
    "nan-at-full-size": ("not finite", "not finite"),
    "every-second-update": (None, "unseen update"),
}
IMPLAUSIBLE = {
    "remembered": "a batch that it had never seen took",
    "remembers-lately": "a batch that it had never seen took",
    "remembered-and-kept": "a batch that it had never seen took",
    "skips-known": "a batch that it had never seen took",
    "left-to-a-thread": "work was left over when its clock stopped",
    "slow-clock": "its samples add up to",
}


def run(systems, workload=FULL, phases=PHASES, **options):
    plan = rnnbench.make_plan([f"sabotage/packed/{name}" for name in systems], [workload], device="cpu", phases=phases)
    return rnnbench.run_plan(plan, "run", **{"effort": "quick", "sample_seconds": 0.3, **options})


def found(results, system):
    return {row.phase: (row.status, row.reason) for row in results.rows if row.execution == system}


def test_what_is_right_only_on_the_small_version_is_wrong(sabotage):
    results = run(["honest", *WRONG])
    assert {status for status, _ in found(results, "honest").values()} == {"verified"}
    for system, expected in WRONG.items():
        for phase, words in zip(("forward", "train"), expected, strict=True):
            status, reason = found(results, system)[phase]
            if words is None:
                assert status == "verified", (system, phase, reason)
                continue
            assert (status, reason.partition(":")[0]) == ("wrong", "at full size"), (system, phase, status, reason)
            assert words in reason, (system, phase, reason)
    assert {row.execution for row in results.rows if row.best} <= {
        "honest",
        "cut-backpropagation",
        "every-second-update",
    }


def test_wrong_updates_by_ctc_are_found_though_small_gradients_count_less(sabotage):
    wrong = ["smaller-batch", "cut-backpropagation", "low-precision", "every-second-update"]
    results = run(["honest", *wrong], CTC, phases=["train"])
    assert found(results, "honest") == {"train": ("verified", "")}
    for system in wrong:
        status, reason = found(results, system)["train"]
        assert (status, reason.partition(":")[0]) == ("wrong", "at full size"), (system, status, reason)


def test_a_machine_that_becomes_busy_makes_no_row_fail(sabotage):
    assert found(run(["busy-machine"]), "busy-machine") == {"forward": ("verified", ""), "train": ("verified", "")}


@pytest.mark.parametrize("system", ["keeps-what-was-read", "slow-after-reading"])
def test_what_reading_leaves_behind_does_not_make_a_batch_an_unknown_one(sabotage, system):
    assert found(run([system]), system) == {"forward": ("verified", ""), "train": ("verified", "")}


def test_an_honest_launch_says_what_was_checked(sabotage):
    results = run(["honest"])
    launches = {one.case.phase: one for one in results.contents.records if isinstance(one, Launch)}
    assert launches["forward"].checked == "logits of the first batch and of two unseen batches"
    assert launches["train"].checked == "the first 3 updates, and two updates by unseen batches"
    for launch in launches.values():
        assert launch.steady is True
        assert all(figure.passes for figure in launch.checks)
    kinds = [figure.quantity.partition(" of")[0] for figure in launches["train"].checks]
    assert kinds == ["loss", "first 3 updates", "loss", "direction", "length"]


@pytest.mark.parametrize(
    ("three", "one", "words"),
    [
        (0, 1e12, "the first update (more would take too long), and two updates by unseen batches"),
        (0, 2e7, "the first loss (an update would take too long), and two updates by unseen batches"),
        (0, 0, "nothing of the first batches (they would take too long), and two updates by unseen batches"),
    ],
)
def test_a_large_workload_is_checked_as_far_as_the_reference_can_and_says_so(sabotage, monkeypatch, three, one, words):
    monkeypatch.setattr("rnnbench.verify.expected.THREE_UPDATES", three)
    monkeypatch.setattr("rnnbench.verify.expected.ONE_UPDATE", one)
    results = run(["honest", "smaller-batch"])
    launches = {
        (launch.case.system, launch.case.phase): launch
        for launch in results.contents.records
        if isinstance(launch, Launch)
    }
    assert launches["sabotage/packed/honest", "train"].checked == words
    assert found(results, "honest")["train"] == ("verified", "")
    assert found(results, "smaller-batch")["train"][0] == "wrong"


@pytest.mark.parametrize("system", IMPLAUSIBLE)
def test_a_time_that_cannot_be_true_fails_the_row(sabotage, system):
    results = run([system])
    for phase, (status, reason) in found(results, system).items():
        assert status == "failed", (phase, status, reason)
        assert reason.startswith(IMPLAUSIBLE[system]), (phase, reason)


def test_samples_that_a_system_reports_itself_are_refused(sabotage):
    for status, reason in found(run(["own-samples"]), "own-samples").values():
        assert status == "failed", reason


@pytest.mark.parametrize(
    ("system", "reason"), [("two-layers", "parameters, and the workload has"), ("shared-layers", "")]
)
def test_layers_that_are_missing_or_shared_are_found(sabotage, system, reason):
    results = run([system, "honest"], DEEP)
    for phase, (status, why) in found(results, system).items():
        assert status == "wrong" or (reason and reason in why), (phase, status, why)
    assert {status for status, _ in found(results, "honest").values()} == {"verified"}


def test_a_system_is_not_told_that_it_is_timed(sabotage):
    assert {status for status, _ in found(run(["looks-at-the-mode"]), "looks-at-the-mode").values()} == {"verified"}


NEARLY_RIGHT = ["weight-decay", "other-rate", "other-beta", "other-epsilon", "reversed-update"]


def test_updates_that_are_nearly_right_are_wrong(sabotage):
    plan = rnnbench.make_plan(
        [f"sabotage/packed/{name}" for name in NEARLY_RIGHT], ["ce-short"], device="cpu", phases=["train"]
    )
    verdicts = {one.case.system: one for one in rnnbench.verify_plan(plan).verifications}
    for name in NEARLY_RIGHT:
        one = verdicts[f"sabotage/packed/{name}"]
        assert one.verdict == "wrong", f"{name}: {max(one.figures, key=lambda figure: figure.excess)}"


def test_a_reversed_update_is_wrong_at_the_tolerance_of_bf16(sabotage):
    plan = rnnbench.make_plan(
        ["sabotage/packed/reversed-update"], ["ce-short"], device="cpu", phases=["train"], precisions=["bf16"]
    )
    [one] = rnnbench.verify_plan(plan).verifications
    assert one.verdict == "wrong"
    assert one.reason.startswith("updates of")
