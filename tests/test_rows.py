"""From stored records to the rows of a table: the best row, statuses, and failures."""

import math

import msgspec
import pytest

from made_up import make_case, make_contents, make_launch, make_proof
from rnnbench.analysis.rows import make_rows
from rnnbench.domain.case import LeftOut
from rnnbench.domain.result import Sample
from rnnbench.report.terminal import show_run

FAST, SLOW = make_case("fast"), make_case("slow")


def row_of(case, *records, **run):
    """The one row of a run of one case."""
    (row,) = make_rows(make_contents([case], *records, **run))
    return row


def verified(case, *launches):
    return row_of(case, make_proof(case), *launches)


# --- numbers --------------------------------------------------------------------------------------------


def test_elapsed_wall_and_throughput_agree_exactly():
    case = make_case(workload="ce-short[batch=7]")
    odd = msgspec.structs.replace(make_launch(case, round=1), outcome="ok", samples=(Sample(3, 0.1), Sample(11, 1 / 3)))
    row = verified(case, make_launch(case, 0.1, 0.2, 0.7, batches=3), odd)
    assert row.batches == 9 + 14
    # The geometric mean of two launches: 1 s for 9 batches, and 0.1 + 1/3 s for 14.
    assert row.wall_s == pytest.approx(math.sqrt(1.0 / 9 * (0.1 + 1 / 3) / 14), rel=1e-12)
    assert row.elapsed_s == pytest.approx(row.batches * row.wall_s, rel=1e-9)
    assert row.sequences_per_s == pytest.approx(7 / row.wall_s, rel=1e-9)
    assert row.wall_low_s <= row.wall_s <= row.wall_high_s
    assert row.launches == 2


def test_a_row_describes_its_case_and_system():
    row = row_of(make_case("script", phase="forward", precision="bf16"))
    assert (row.system, row.framework, row.granularity, row.execution) == ("toy/fine/script", "toy", "fine", "script")
    assert (row.workload, row.phase, row.device, row.precision) == ("ce-short", "forward", "cpu", "bf16")
    assert row.environment == "toy-1.0"


def test_start_up_is_the_median_of_the_launches_and_memory_the_largest():
    starts = [(1.0, 10), (9.0, 30), (2.0, 20)]
    row = verified(
        FAST,
        *(
            make_launch(
                FAST, 1.0, round=number, import_s=start, build_s=start, first_call_s=start, warm_seconds=1.0,
                peak_host_bytes=peak, peak_device_bytes=None, parameter_count=5, threads=2,
            )
            for number, (start, peak) in enumerate(starts)
        ),
    )  # fmt: skip
    assert (row.import_s, row.build_s, row.first_call_s, row.warm_up_s) == (2.0, 2.0, 2.0, 3.0)
    assert (row.peak_host_bytes, row.peak_device_bytes) == (30, None)
    assert (row.parameter_count, row.threads) == (5, 2)


# --- best -----------------------------------------------------------------------------------------------


def test_the_fastest_verified_row_is_best_and_the_others_are_compared_with_it():
    rows = make_rows(
        make_contents(
            [SLOW, FAST],
            make_proof(FAST),
            make_proof(SLOW),
            make_launch(SLOW, 3.0, 3.0),
            make_launch(FAST, 2.0, 2.0),
        )
    )
    slow, fast = rows
    assert (fast.best, fast.ratio, fast.ratio_low, fast.ratio_high) == (True, 1.0, 1.0, 1.0)
    assert (slow.best, slow.ratio) == (False, pytest.approx(1.5))
    assert slow.ratio_low <= 1.5 <= slow.ratio_high


@pytest.mark.parametrize("verdict", ["wrong", "failed", "timeout", None])
def test_a_faster_row_that_is_not_verified_keeps_its_time_and_is_never_best(verdict):
    proofs = [make_proof(FAST, verdict, 0.5, reason="loss is off")] if verdict else []
    contents = make_contents([FAST, SLOW], *proofs, make_proof(SLOW), make_launch(FAST, 1.0), make_launch(SLOW, 4.0))
    fast, slow = make_rows(contents)
    assert (fast.best, slow.best) == (False, True)
    assert fast.wall_s == 1.0
    assert fast.ratio == 0.25
    assert fast.status == ("wrong" if verdict == "wrong" else "unverified")
    assert fast.reason


def test_where_no_row_is_verified_there_is_no_best_and_no_ratio():
    rows = make_rows(make_contents([FAST, SLOW], make_launch(FAST, 1.0), make_launch(SLOW, 2.0)))
    assert [(row.best, row.ratio) for row in rows] == [(False, None)] * 2


@pytest.mark.parametrize(
    "other", [{"workload": "ce-long"}, {"phase": "forward"}, {"device": "cuda"}, {"precision": "bf16"}]
)
def test_every_workload_phase_device_and_precision_has_its_own_best(other):
    elsewhere = make_case("slow", **other)
    records = [make_proof(FAST), make_proof(elsewhere), make_launch(FAST, 1.0), make_launch(elsewhere, 2.0)]
    assert [(row.best, row.ratio) for row in make_rows(make_contents([FAST, elsewhere], *records))] == [(True, 1.0)] * 2


# --- verification ---------------------------------------------------------------------------------------


def test_a_verified_row_has_its_largest_error():
    row = verified(FAST, make_launch(FAST, 1.0))
    assert (row.status, row.reason) == ("verified", "")
    assert (row.worst_error, row.worst_quantity) == (1e-7, "loss of batch 0")


def test_a_wrong_row_says_why_and_keeps_everything_else():
    row = row_of(FAST, make_proof(FAST, "wrong", 0.5, reason="loss of batch 0: 0.5"), make_launch(FAST, 1.0))
    assert (row.status, row.reason, row.wall_s) == ("wrong", "loss of batch 0: 0.5", 1.0)


def test_a_row_without_a_verification_says_so():
    row = row_of(FAST, make_launch(FAST, 1.0))
    assert (row.status, row.reason) == ("unverified", "not verified in this run")


@pytest.mark.parametrize("verdict", ["failed", "timeout"])
def test_a_row_whose_verification_did_not_end_says_how_it_ended(verdict):
    row = row_of(FAST, make_proof(FAST, verdict, figures=(), reason="killed by SIGSEGV"), make_launch(FAST, 1.0))
    assert (row.status, row.reason) == ("unverified", f"its verification ended as {verdict}: killed by SIGSEGV")


@pytest.mark.parametrize(
    "other", [{"workload": "ce-long"}, {"phase": "forward"}, {"device": "cuda"}, {"precision": "bf16"}]
)
def test_the_verification_of_another_case_proves_nothing(other):
    assert row_of(FAST, make_proof(make_case("fast", **other)), make_launch(FAST, 1.0)).status == "unverified"


def test_a_proof_holds_for_every_size_of_its_structure_and_for_no_other_structure():
    larger = make_case("fast", workload="ce-short[batch=128]")
    deeper = make_case("fast", workload="ce-short[layers=2]")
    rows = make_rows(
        make_contents(
            [FAST, larger, deeper], make_proof(FAST), make_proof(deeper, "wrong", 1.0, reason="off"),
            make_launch(FAST, 1.0), make_launch(larger, 2.0), make_launch(deeper, 3.0),
        )
    )  # fmt: skip
    assert [row.status for row in rows] == ["verified", "verified", "wrong"]


# --- failures, noise, and what is still missing -------------------------------------------------------------


def test_a_case_that_failed_in_one_round_is_failed_with_its_reason():
    crash = make_launch(FAST, round=1, reason="killed by SIGSEGV", stage="warm-up", log_tail="the end of it")
    row = verified(FAST, make_launch(FAST, 1.0, round=0), crash, make_launch(FAST, 1.0, round=2))
    assert (row.status, row.reason, row.stage) == ("failed", "killed by SIGSEGV", "warm-up")
    assert row.log_tail == "the end of it"
    assert (row.wall_s, row.ratio, row.best) == (None, None, False)


def test_a_timeout_has_its_own_status():
    row = verified(FAST, make_launch(FAST, outcome="timeout", reason="over 3 s during first call"))
    assert (row.status, row.reason) == ("timeout", "over 3 s during first call")


def test_a_retry_that_worked_takes_the_place_of_the_failure():
    row = verified(FAST, make_launch(FAST, reason="no memory left"), make_launch(FAST, 1.0))
    assert (row.status, row.wall_s, row.launches) == ("verified", 1.0, 1)


def test_a_retry_that_worked_takes_the_place_of_the_failure_also_on_a_busy_machine():
    row = verified(FAST, make_launch(FAST, reason="no memory left"), make_launch(FAST, 1.0, noisy=True))
    assert (row.status, row.wall_s, row.noisy) == ("verified", 1.0, True)


def test_a_retry_that_failed_again_has_the_newer_reason():
    assert verified(FAST, make_launch(FAST, reason="first"), make_launch(FAST, reason="second")).reason == "second"


def test_a_quiet_launch_is_preferred_to_the_noisy_ones_of_its_round():
    row = verified(
        FAST,
        make_launch(FAST, 9.0, noisy=True),
        make_launch(FAST, 1.0, attempt=1),
        make_launch(FAST, 7.0, round=1, noisy=True),
        make_launch(FAST, 3.0, round=1, attempt=1),
    )
    assert (row.wall_s, row.noisy, row.launches) == (pytest.approx(math.sqrt(3)), False, 2)


def test_if_all_were_noisy_the_last_launch_counts_and_the_row_is_marked():
    row = verified(FAST, make_launch(FAST, 9.0, noisy=True), make_launch(FAST, 2.0, attempt=1, noisy=True))
    assert (row.wall_s, row.noisy, row.launches) == (2.0, True, 1)


def test_a_case_not_launched_yet_is_a_row_that_says_so():
    row = row_of(FAST, make_proof(FAST))
    assert (row.status, row.reason, row.wall_s) == ("unverified", "not measured yet", None)


def test_what_was_left_out_is_a_row_with_its_reason_after_the_others():
    left = LeftOut(case=make_case("trace"), reason="a declared gap")
    contents = make_contents([FAST], make_proof(FAST), make_launch(FAST, 1.0), left_out=[left])
    rows = make_rows(contents)
    assert [(row.execution, row.status, row.reason) for row in rows] == [
        ("fast", "verified", ""),
        ("trace", "unsupported", "a declared gap"),
    ]


# --- the table ------------------------------------------------------------------------------------------


def test_the_table_has_the_fastest_first_and_unranked_rows_below_the_line():
    wrong, crash, late = make_case("wrong"), make_case("crash"), make_case("late")
    contents = make_contents(
        [crash, wrong, SLOW, late, FAST],
        make_proof(FAST), make_proof(SLOW), make_proof(wrong, "wrong", 0.5, reason="loss is off"),
        make_launch(SLOW, 4.0, noisy=True), make_launch(FAST, 2.0), make_launch(wrong, 1.0),
        make_launch(crash, reason="killed by SIGSEGV"), make_launch(late, outcome="timeout", reason="over 3 s"),
        left_out=[LeftOut(case=make_case("trace"), reason="a declared gap")],
    )  # fmt: skip
    text = show_run(contents, make_rows(contents))
    table = text[text.index("ce-short · train") : text.index("\n\n± uncertain")].splitlines()
    assert [line.split()[0].rpartition("/")[2] for line in table[3:] if "─" not in line] == [
        "fast", "slow", "wrong", "crash", "late", "trace",
    ]  # fmt: skip
    assert "─" in table[5]  # between slow and wrong
    by_name = {line.split()[0].rpartition("/")[2]: line for line in table[3:]}
    assert by_name["fast"].endswith("verified")
    assert "1.00×" in by_name["fast"]
    assert by_name["slow"].endswith("verified~")
    assert "2.00×" in by_name["slow"]
    assert by_name["wrong"].endswith("wrong: loss is off")
    assert "1.00 s" in by_name["wrong"]
    assert by_name["crash"].endswith("failed: killed by SIGSEGV")
    assert by_name["late"].endswith("timeout: over 3 s")
    assert by_name["trace"].endswith("unsupported: a declared gap")
