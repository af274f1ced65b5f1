"""A row says what a reader must know of its time: wrong at full size, not steady, above the limit, uncertain."""

import msgspec
import pytest

from analysis_runs import MadeUpRow, contents_of, make_limit
from made_up import make_case, make_contents, make_launch, make_proof
from rnnbench.analysis.compare import choose_environment, compare_runs
from rnnbench.analysis.history import make_history
from rnnbench.analysis.row import shown_status
from rnnbench.analysis.rows import make_rows
from rnnbench.analysis.steadiness import is_steady
from rnnbench.domain.result import Figure
from rnnbench.report import comparison, history
from rnnbench.report.charts.bars import bars
from rnnbench.report.charts.theme import looks
from rnnbench.report.document import Document
from rnnbench.report.explanation import show_details
from rnnbench.report.html import page_data
from rnnbench.report.markdown import as_markdown
from rnnbench.report.terminal import show_run
from rnnbench.report.write import results_as_csv, results_as_json

CASE = make_case("eager")
GOOD, BAD, NAN = Figure("loss", 1e-7, 1e-5), Figure("gradient of head.w", 0.3, 1e-4), Figure("logits", None, 1e-4)
#: Of `pytorch/fine/script`, once published at 1.85 s: it takes 0.7 s.
NOT_WARM = [5.31, 1.80, 0.684, 0.690, 0.750]


def row_of(*launches, case=CASE, proof=True):
    (row,) = make_rows(make_contents([case], *([make_proof(case)] if proof else []), *launches))
    return row


def everything(contents):
    """All that is printed of a run, by where it is printed."""
    document = Document(["run"], [contents])
    rows = document.analysis.rows[0]
    return {
        "show": show_run(contents, rows),
        "explain": show_details(document.analysis, [contents.run], document.analysis.groups),
        "markdown": as_markdown(document, []).decode(),
        "csv": results_as_csv(document).decode(),
        "json": results_as_json(document).decode(),
        "page": page_data(document, []),
        "chart": str(bars(document.panels[0], looks(row.framework for row in rows), "")),
    }


# --- at full size ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("proof", [True, False])
def test_a_program_that_is_wrong_at_full_size_is_wrong_whatever_its_small_version_was(proof):
    launch = make_launch(CASE, 1.0, 1.0, checks=(GOOD, BAD), checked="three updates and an unseen batch")
    row = row_of(launch, make_launch(CASE, 1.0, 1.0, round=1), proof=proof)
    assert (row.status, row.reason) == ("wrong", "at full size: gradient of head.w: 0.3 (tolerance 0.0001)")
    assert not row.best


def test_the_worst_figure_is_named_and_one_that_is_not_finite_is_the_worst():
    assert "logits: not finite" in row_of(make_launch(CASE, 1.0, checks=(BAD, NAN), checked="forward only")).reason


def test_one_checked_launch_is_enough_and_the_row_says_what_was_checked():
    launches = [make_launch(CASE, 1.0, checks=(GOOD,), checked="forward only"), make_launch(CASE, 1.0, round=1)]
    row = row_of(*launches)
    assert (row.status, row.checked) == ("verified", "forward only")
    contents = make_contents([CASE], make_proof(CASE), *launches)
    printed = everything(contents)
    assert all("forward only" in printed[where] for where in ("explain", "csv", "json", "page"))


def test_a_row_that_was_computed_in_another_type_says_so():
    said = "computed in float16: autocast has no other type for cuDNN's layers"
    launches = [make_launch(CASE, 1.0, how_it_ran=said), make_launch(CASE, 1.0, round=1, how_it_ran=said)]
    shown = everything(make_contents([CASE], make_proof(CASE), *launches))["show"]
    assert shown.count(f"{CASE.system} {CASE.precision}: {said}") == 1
    launch = make_launch(CASE, 1.0, how_it_ran="the loop is one kernel: 5.0 µs a step")
    assert "one kernel" not in everything(make_contents([CASE], make_proof(CASE), launch))["show"]


# --- steady ---------------------------------------------------------------------------------------------


def test_a_row_that_was_not_warm_when_sampling_began_says_so_everywhere():
    launch = make_launch(CASE, 1.0, 1.0, 1.0, 1.0, steady=False, noisy=True)
    assert shown_status(row_of(launch)) == "verified, not steady~"
    printed = everything(make_contents([CASE], make_proof(CASE), launch))
    for where in ("show", "explain", "markdown", "page", "chart"):
        assert "not steady" in printed[where].partition("\n\nwall ")[0], where
    assert '"steady": false' in printed["json"]


def test_samples_that_fall_are_not_steady_whatever_the_worker_said():
    row = row_of(make_launch(CASE, *NOT_WARM, steady=True))
    assert row.steady is False
    assert row.uncertain


@pytest.mark.parametrize(
    "samples",
    [
        [1.0, 1.1, 0.9, 1.05, 0.95],
        [2.0, 1.0, 1.0, 1.0, 1.0],  # one slow block is no drift
        [1.0, 1.0, 3.0, 1.0, 1.0],
        [1.05, 1.04, 1.02, 1.01, 1.0],  # small: `check` counts it as drift
        [1.0],
    ],
)
def test_noise_outliers_and_small_drift_are_steady(samples):
    assert is_steady([make_launch(CASE, *samples)])


@pytest.mark.parametrize(
    "samples",
    [NOT_WARM, [*NOT_WARM, *[0.7] * 5], [0.6, 0.62, 0.7, 0.85, 0.9], [1.5 - 0.05 * number for number in range(10)]],
)
def test_large_drift_in_either_direction_is_not(samples):
    assert not is_steady([make_launch(CASE, *samples)])


# --- the limit ------------------------------------------------------------------------------------------


def limited(fast=0.001, **limit):
    rows = [MadeUpRow("toy/fine/eager", 2.0), MadeUpRow("toy/fine/cheat", fast)]
    return contents_of(*rows, others=[make_limit(flops_per_s=1e11, **limit)])  # a batch takes 0.19 s


def test_a_row_above_the_limit_is_never_best_and_stands_below_the_line():
    contents = limited()
    honest, cheat = make_rows(contents)
    assert (honest.best, cheat.best, cheat.above_limit) == (True, False, True)
    assert shown_status(cheat) == "verified, above the limit"
    document = Document(["run"], [contents])
    (panel,) = document.panels
    assert [row.execution for row in panel.ranked] == ["eager"]
    assert [row.execution for row in panel.unranked] == ["cheat"]
    assert [row.execution for row in panel.verified] == ["eager"]
    analysis = panel.analysis
    assert (analysis.best.row.system, analysis.gaps[0].recovered) == ("toy/fine/eager", ())
    assert [one.kind for one in analysis.summary if "cheat" in one.text] == ["above"]
    table = show_run(contents, make_rows(contents)).splitlines()
    place = {name: next(i for i, line in enumerate(table) if name in line) for name in ("fine/eager", "fine/cheat")}
    assert "─" in table[place["fine/eager"] + 1]
    assert place["fine/cheat"] == place["fine/eager"] + 2


@pytest.mark.parametrize(("fast", "noisy", "above"), [(0.18, False, False), (0.15, False, True), (0.15, True, False)])
def test_the_limit_itself_is_measured_and_may_be_off(fast, noisy, above):
    assert make_rows(limited(fast, noisy=noisy))[1].above_limit is above


def test_a_row_whose_interval_reaches_below_the_limit_is_not_above_it():
    (row,) = make_rows(contents_of(MadeUpRow("toy/fine/eager", [0.15] * 5), others=[make_limit(flops_per_s=1e11)]))
    assert row.limit_share > 1.1
    assert not row.above_limit


# --- uncertain ------------------------------------------------------------------------------------------


def two_versions(*factors):
    rows = [
        MadeUpRow("toy/fine/eager", *([wall * factor] * 5 for factor in factors), environment=environment)
        for environment, wall in (("toy-1.0", 3.0), ("toy-2.0", 1.0))
    ]
    return contents_of(*rows)


def figures_of(contents):
    """The lines with the figures of the rows, wherever they are printed."""
    printed = everything(contents)
    parts = [choose_environment(contents, name) for name in ("toy-2.0", "toy-1.0")]
    named = [comparison.NamedRun("run", contents.run)] * 2
    compared = compare_runs(*parts, across=["environment"])
    lines = make_history(["run"], [contents])
    printed["compare"] = comparison.as_text(compared, *named, [])
    printed["history"] = history.as_text(lines, named[:1])
    return printed


@pytest.mark.parametrize("factors", [(1.0,), (0.8, 1.0, 1.3)])
def test_an_uncertain_time_or_ratio_is_marked_wherever_it_is_printed(factors):
    printed = figures_of(two_versions(*factors))
    for where in ("show", "explain", "chart", "compare", "history"):
        assert "s±" in printed[where], where
        assert "×±" in printed[where], where
    assert "±" in printed["markdown"].partition("# Test Results")[2].partition("Metrics:")[2]
    assert '"uncertain": true' in printed["json"]
    assert '"ratio_uncertain": true' in printed["json"]
    for where in ("show", "explain", "compare", "history", "markdown"):
        assert "uncertain: the 95 % interval of this figure is wider than ±20 %" in " ".join(printed[where].split())


def test_certain_figures_are_not_marked():
    printed = figures_of(two_versions(1.0, 1.001, 0.999))
    for where in ("show", "explain", "chart", "compare", "history"):
        assert "s±" not in printed[where], where
        assert "×±" not in printed[where], where
    assert '"uncertain": true' not in printed["json"]


def test_a_sentence_marks_its_figures():
    (group,) = Document(["run"], [two_versions(0.8, 1.0, 1.3)]).analysis.groups
    assert any("s± [" in one.text for one in group.summary)


def test_a_comparison_says_where_a_side_was_not_steady():
    contents = two_versions(1.0, 1.001, 0.999)
    cold = msgspec.structs.replace(
        contents,
        records=tuple(
            msgspec.structs.replace(one, steady=False) if hasattr(one, "round") else one for one in contents.records
        ),
    )
    parts = [choose_environment(cold, name) for name in ("toy-2.0", "toy-1.0")]
    (case,) = compare_runs(*parts, across=["environment"]).cases
    assert not case.steady
