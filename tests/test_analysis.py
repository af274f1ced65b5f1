"""The gap, the share of it that is won back, break-even, and the best row, on known times."""

import math

import msgspec
import pytest

import rnnbench
from analysis_runs import MadeUpRow, contents_of, make_limit
from rnnbench.analysis.row import Group, RowId
from rnnbench.report.document import Analysis, analyse


def analysed(*rows, others=()):
    """The analysis of a run that has one group."""
    (group,) = analyse([contents_of(*rows, others=others)]).groups
    return group


def named(system, environment="toy-1.0"):
    return RowId(system, environment)


# --- the gap and the share won back -----------------------------------------------------------------------


def test_the_gap_is_fine_eager_over_the_best_verified_row():
    group = analysed(
        MadeUpRow("toy/fine/eager", 8.0), MadeUpRow("other/stack/eager", 2.0), MadeUpRow("toy/packed/eager", 4.0)
    )
    (gap,) = group.gaps
    assert (gap.eager, gap.best, gap.seen) == (named("toy/fine/eager"), named("other/stack/eager"), True)
    assert gap.times == pytest.approx((4.0, 4.0, 4.0))


@pytest.mark.parametrize("verdict", ["wrong", "failed", ""])
def test_a_faster_row_that_is_not_verified_makes_no_gap(verdict):
    group = analysed(MadeUpRow("toy/fine/eager", 8.0), MadeUpRow("toy/stack/eager", 1.0, verdict=verdict))
    (gap,) = group.gaps
    assert (gap.best, gap.seen, gap.times) == (named("toy/fine/eager"), False, (1.0, 1.0, 1.0))
    assert analysed(MadeUpRow("toy/fine/eager", 8.0, verdict=verdict), MadeUpRow("toy/stack/eager", 1.0)).gaps == ()


def test_the_share_won_back_is_on_a_log_scale():
    rows = [MadeUpRow(f"toy/fine/{name}", wall) for name, wall in (("eager", 16.0), ("half", 4.0), ("none", 16.0))]
    rows += [MadeUpRow("toy/fine/worse", 64.0), MadeUpRow("toy/stack/eager", 1.0)]
    (gap,) = analysed(*rows).gaps
    shares = {one.row.system.rpartition("/")[2]: (one.share.estimate, one.verdict) for one in gap.recovered}
    assert shares == {
        "half": (pytest.approx(0.5), "faster"),
        "none": (pytest.approx(0.0), "no difference seen"),
        "worse": (pytest.approx(-0.5), "slower"),
    }


def test_the_best_row_has_won_back_everything():
    wide = [0.5, 1.0, 1.5, 1.0, 0.8]
    (gap,) = analysed(MadeUpRow("toy/fine/eager", [8.0, 9.0, 7.0]), MadeUpRow("toy/fine/compile", wide)).gaps
    (one,) = gap.recovered
    assert one.share == (1.0, 1.0, 1.0)


def test_only_the_same_program_in_the_same_environment_wins_anything_back():
    rows = [MadeUpRow(f"{name}/fine/{way}", 8.0) for name in ("toy", "other") for way in ("eager", "script")]
    rows += [MadeUpRow("toy/fine/script", 4.0, environment="toy-2.0"), MadeUpRow("toy/packed/script", 1.0)]
    gaps = {gap.eager.system: [one.row for one in gap.recovered] for gap in analysed(*rows).gaps}
    assert gaps == {"toy/fine/eager": [named("toy/fine/script")], "other/fine/eager": [named("other/fine/script")]}


def test_where_no_gap_is_seen_nothing_can_be_won_back():
    noisy = [1.0, 1.4, 0.7, 1.2, 0.9]
    (gap,) = analysed(
        MadeUpRow("toy/fine/eager", noisy), MadeUpRow("toy/fine/script", noisy), MadeUpRow("toy/stack/eager", 1.0)
    ).gaps
    assert not gap.seen
    assert {one.share for one in gap.recovered} == {None}


def test_intervals_contain_their_estimates():
    walls = {"toy/fine/eager": 9.0, "toy/fine/x": 3.0, "toy/stack/eager": 1.0}
    rows = [MadeUpRow(system, [0.98 * wall], [wall], [1.02 * wall]) for system, wall in walls.items()]
    (gap,) = analysed(*rows).gaps
    (one,) = gap.recovered
    for low, estimate, high in (gap.times, one.share, one.against_eager):
        assert low < estimate < high
    assert one.share.estimate == pytest.approx(math.log(3) / math.log(9))
    assert 0.4 < one.share.low < one.share.high < 0.6


# --- break-even -----------------------------------------------------------------------------------------------


def start(first, warm_batches=0, warm_seconds=0.0):
    return {"first_call_s": first, "warm_batches": warm_batches, "warm_seconds": warm_seconds}


def test_compiling_pays_when_its_cost_is_saved():
    # eager: 1 s beyond its first batch; compiled: 31 s beyond its first and three more batches; 3 s saved a batch
    group = analysed(
        MadeUpRow("toy/packed/eager", 4.0, start=start(5.0)),
        MadeUpRow("toy/packed/compile", 1.0, start=start(20.0, 3, 15.0)),
    )
    (one,) = group.break_evens
    assert (one.row, one.eager) == (named("toy/packed/compile"), named("toy/packed/eager"))
    assert one.cost_s == 31.0 - 1.0
    assert one.batches == (10.0, 10.0, 10.0)


@pytest.mark.parametrize(
    ("wall", "verdict"), [(5.0, "slower"), (4.04, "no difference seen"), (4.0, "no difference seen")]
)
def test_a_row_that_is_not_faster_never_pays(wall, verdict):
    rows = [
        MadeUpRow("toy/packed/eager", 4.0, start=start(5.0)),
        MadeUpRow("toy/packed/compile", wall, start=start(50.0)),
    ]
    (one,) = analysed(*rows).break_evens
    assert (one.verdict, one.batches) == (verdict, None)


def test_a_row_that_starts_as_fast_as_eager_pays_at_once():
    rows = [
        MadeUpRow("toy/packed/eager", 4.0, start=start(9.0)),
        MadeUpRow("toy/packed/compile", 1.0, start=start(2.0)),
    ]
    (one,) = analysed(*rows).break_evens
    assert (one.cost_s, one.batches) == (0.0, (0.0, 0.0, 0.0))


def test_a_row_is_compared_with_its_own_framework_granularity_and_environment():
    rows = [
        MadeUpRow("toy/packed/eager", 4.0),
        MadeUpRow("toy/packed/eager", 3.0, environment="toy-2.0"),
        MadeUpRow("toy/packed/script", 2.0, environment="toy-2.0"),
        MadeUpRow("toy/cell/script", 2.0),
        MadeUpRow("other/packed/script", 2.0),
        MadeUpRow("toy/packed/compile", 1.0, verdict="wrong"),
    ]
    (one,) = analysed(*rows).break_evens
    assert (one.row, one.eager) == (named("toy/packed/script", "toy-2.0"), named("toy/packed/eager", "toy-2.0"))


# --- the best row ---------------------------------------------------------------------------------------------


def test_the_best_row_has_its_cost_and_the_next_row():
    group = analysed(
        MadeUpRow("toy/stack/eager", 1.0, start={**start(4.0), "peak_host_bytes": 500}),
        MadeUpRow("toy/cell/eager", 2.0, start={"peak_host_bytes": 300}),
        MadeUpRow("toy/fine/eager", 4.0, start={"peak_host_bytes": 400}),
    )
    best = group.best
    assert (best.row, best.others, best.level) == (named("toy/stack/eager"), 2, ())
    assert (best.next, best.next_ratio) == (named("toy/cell/eager"), (2.0, 2.0, 2.0))
    assert (best.compile_s, best.memory_bytes) == (3.0, 500)
    assert (best.least_memory, best.least_memory_bytes) == (named("toy/cell/eager"), 300)


def test_rows_without_a_seen_difference_are_level_with_the_best_even_behind_a_slower_one():
    wide = [0.9, 1.9, 0.9, 1.7, 1.1]
    rows = [
        MadeUpRow("toy/stack/eager", 1.0),
        MadeUpRow("toy/cell/eager", 1.1),
        MadeUpRow("toy/packed/eager", wide),
        MadeUpRow("toy/fine/eager", 1.01),
    ]
    best = analysed(*rows).best
    assert best.level == (named("toy/fine/eager"), named("toy/packed/eager"))
    assert best.next == named("toy/cell/eager")


# --- all together ---------------------------------------------------------------------------------------------


def test_every_machine_workload_phase_device_and_precision_is_a_group_of_its_own():
    rows = [
        MadeUpRow("toy/fine/eager", 2.0),
        MadeUpRow("toy/fine/eager", 1.0, phase="forward"),
        MadeUpRow("toy/stack/eager", 1.0),
    ]
    analysis = analyse([contents_of(*rows), contents_of(rows[0])])
    assert [one.group for one in analysis.groups] == [
        Group(0, "ce-short", "train", "cpu", "fp32"),
        Group(0, "ce-short", "forward", "cpu", "fp32"),
        Group(1, "ce-short", "train", "cpu", "fp32"),
    ]
    # two runs may come from two machines, so each has its own best row
    assert [one.best.row.system for one in analysis.groups] == ["toy/stack/eager", "toy/fine/eager", "toy/fine/eager"]
    assert [len(rows) for rows in analysis.rows] == [3, 1]


def test_groups_have_the_least_time_where_rates_were_measured():
    rows = [MadeUpRow("toy/fine/eager", 2.0), MadeUpRow("toy/fine/eager", 2.0, precision="bf16")]
    analysis = analyse([contents_of(*rows, others=[make_limit()]), contents_of(rows[0])])
    assert [one.least is not None for one in analysis.groups] == [True, False, False]
    assert [(peak.run, peak.device, peak.precision) for peak in analysis.peaks] == [(0, "cpu", "fp32")]
    assert analysis.groups[0].least.seconds == analysis.rows[0][0].limit_s


def test_an_analysis_survives_json():
    rows = [
        MadeUpRow("toy/fine/eager", 8.0),
        MadeUpRow("toy/fine/script", 4.0, start=start(9.0)),
        MadeUpRow("toy/stack/eager", 2.0),
    ]
    analysis = analyse([contents_of(*rows, others=[make_limit()])])
    assert msgspec.json.decode(msgspec.json.encode(analysis), type=Analysis) == analysis


def test_a_run_without_results_is_analysed_too():
    empty = contents_of(MadeUpRow("toy/fine/eager"))
    empty = msgspec.structs.replace(empty, records=())
    (group,) = analyse([empty]).groups
    assert (group.best, group.gaps, group.break_evens) == (None, (), ())
    assert [one.kind for one in group.summary] == ["none"]


def test_loaded_runs_are_analysed_from_python():
    contents = contents_of(MadeUpRow("toy/fine/eager", 8.0), MadeUpRow("toy/stack/eager", 2.0))
    analysis = rnnbench.analyse_runs(rnnbench.Results(contents), rnnbench.Results(contents))
    assert [one.gaps[0].times.estimate for one in analysis.groups] == pytest.approx([4.0, 4.0])
