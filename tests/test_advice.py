"""What `explain` advises: only what the intervals support, and every way out of a loop that is seen to be faster."""

from analysis_runs import MadeUpRow, contents_of, make_limit
from rnnbench.report.document import analyse


def advice_of(*rows, others=()):
    (group,) = analyse([contents_of(*rows, others=others)]).groups
    return [advice.text for advice in group.advice]


def test_rows_that_cannot_be_told_apart_are_all_advised():
    (use,) = advice_of(*(MadeUpRow(f"toy/packed/{name}", 1.0) for name in "abcdef"))
    assert (
        use
        == "Use toy/packed/a, toy/packed/b, toy/packed/c or 3 more, no difference seen: 1.00 s [1.00, 1.00] a batch."
    )


def test_a_row_that_is_warm_much_earlier_is_advised_for_few_batches():
    use, *_ = advice_of(
        MadeUpRow("toy/packed/compile", 1.0, start={"first_call_s": 31.0}),
        MadeUpRow("toy/packed/script", 1.0, start={"first_call_s": 2.0}),
    )
    assert use.endswith("For few batches toy/packed/script, which is warm 29.0 s earlier.")


def test_a_loop_has_two_ways_out():
    _, loop = advice_of(
        MadeUpRow("toy/fine/eager", 8.0),
        MadeUpRow("toy/fine/script", 4.0),
        MadeUpRow("toy/packed/eager", 2.0),
        MadeUpRow("toy/stack/eager", 1.0),
    )
    assert loop == "toy: your loop costs 8.00×; run it with fine/script (4.00×) or rewrite as stack/eager (1.00×)."


def test_nothing_is_advised_that_is_not_seen_to_be_faster():
    _, loop = advice_of(
        MadeUpRow("toy/fine/eager", 2.0),
        MadeUpRow("toy/fine/script", 2.01),
        MadeUpRow("toy/stack/eager", 3.0),
        MadeUpRow("other/stack/eager", 1.0, environment="other-1.0"),
    )
    assert loop == "toy: your loop costs 2.00×; nothing here is seen to be faster."


def test_a_rewrite_that_gains_nothing_over_another_execution_is_not_advised():
    _, loop = advice_of(
        MadeUpRow("toy/fine/eager", 2.0), MadeUpRow("toy/fine/script", 1.0), MadeUpRow("toy/packed/eager", 1.001)
    )
    assert loop == "toy: your loop costs 2.00×; run it with fine/script (1.00×)."


def test_many_batches_until_compiling_pays_are_said():
    _, loop = advice_of(
        MadeUpRow("toy/fine/eager", 1.0, start={"first_call_s": 1.0}),
        MadeUpRow("toy/fine/compile", 0.5, start={"first_call_s": 500.5}),
    )
    assert "fine/compile (1.00× after 1,000 batches)" in loop


def test_a_loop_that_costs_nothing_is_kept():
    assert "toy: keep your loop, it is not seen to cost anything." in advice_of(
        MadeUpRow("toy/fine/eager", 1.0), MadeUpRow("toy/stack/eager", 1.0)
    )


def test_the_framework_with_the_fastest_way_comes_first():
    _, first, second = advice_of(
        MadeUpRow("toy/fine/eager", 4.0),
        MadeUpRow("other/fine/eager", 9.0, environment="other-1.0"),
        MadeUpRow("other/fine/graph", 1.0, environment="other-1.0"),
    )
    assert first.startswith("other: ")
    assert second.startswith("toy: ")


def test_what_is_left_to_win_and_what_memory_costs():
    limit = make_limit(flops_per_s=2e10)  # ce-short needs 19.8 GFLOP
    texts = advice_of(
        MadeUpRow("toy/stack/eager", 2.0, start={"peak_host_bytes": 3_000_000_000}),
        MadeUpRow("toy/packed/eager", 4.0, start={"peak_host_bytes": 1_000_000_000}),
        others=[limit],
    )
    assert "reaches 49 % of the machine's limit: nothing here can be more than 2.02×" in texts[1]
    assert texts[2] == "If memory is scarce, toy/packed/eager: 1.00 GB instead of 3.00 GB."


def test_without_a_verified_row_no_time_is_to_be_used():
    assert advice_of(MadeUpRow("toy/fine/eager", 1.0, verdict="wrong")) == [
        "No row is verified: see why with `rnnbench show`, and do not use any time of this table."
    ]
