"""The one interval of a run: from its launches, the same in tables, sentences, comparisons and histories."""

import math

import msgspec
import numpy as np
import pytest

from analysis_runs import MadeUpRow, contents_of
from made_up import make_case, make_contents, make_launch, make_proof
from rnnbench.analysis.compare import choose_environment, compare_runs
from rnnbench.analysis.history import make_history
from rnnbench.analysis.row import over
from rnnbench.analysis.rows import make_rows, measure_rows
from rnnbench.report.document import analyse
from rnnbench.stats.intervals import difference_verdict
from rnnbench.stats.launch_means import SINGLE_LAUNCH

SYSTEMS = [f"toy/fine/way-{number}" for number in range(6)]


def run_of(*rows):
    return measure_rows(contents_of(*rows))


def drawn(generator, walls, launches, between, within=0.02, samples=6):
    """Rows whose launches differ by `between` and their blocks by `within`, as shares of their time."""
    levels = [wall * np.exp(generator.normal(0, between, launches)) for wall in walls]
    blocks = [[list(level * np.exp(generator.normal(0, within, samples))) for level in row] for row in levels]
    return [MadeUpRow(system, *row) for system, row in zip(SYSTEMS, blocks, strict=False)]


def pairs(trials, launches, between, walls=(3.0, 2.0, 2.0, 2.0, 2.0, 2.0)):
    """The first row over the second, in many runs."""
    generator = np.random.default_rng(0)
    return [over(*run_of(*drawn(generator, walls, launches, between))[:2]) for _ in range(trials)]


# --- what it says ---------------------------------------------------------------------------------------


def test_equal_rows_are_seldom_seen_to_differ():
    """At most one time in twenty, however much the launches vary."""
    for launches, between in ((1, 0.03), (2, 0.05), (3, 0.01), (3, 0.05), (3, 0.15)):
        verdicts = [difference_verdict(one) for one in pairs(200, launches, between, walls=[1.0] * 6)]
        assert verdicts.count("no difference seen") >= 0.95 * len(verdicts)


def test_a_large_difference_is_seen():
    verdicts = [difference_verdict(one) for one in pairs(100, 3, 0.02, walls=[1.3] + [1.0] * 5)]
    assert verdicts.count("slower") >= 90


def test_a_noisy_launch_weighs_no_more_than_the_others():
    """The worker samples a noisy launch for longer. Weighed by batches, its time would draw the mean to itself."""
    case = make_case()
    quiet, noisy = make_launch(case, *[1.0] * 5), make_launch(case, *[1.2] * 50, round=1)
    (row,) = make_rows(make_contents([case], make_proof(case), quiet, noisy))
    assert row.wall_s == pytest.approx(math.sqrt(1.2))
    assert row.wall_s < (5 + 60) / 55 - 0.05


def test_equal_launches_have_no_error_unless_those_of_other_rows_vary():
    quiet = MadeUpRow("toy/fine/quiet", 1.0)
    (alone,) = run_of(quiet)
    assert alone.wall == pytest.approx((1.0, 1.0, 1.0))
    # Two launches that happen to agree say less than ten that differ.
    loud = [MadeUpRow(f"toy/fine/{number}", [1.0], [1.0 + number / 20]) for number in range(1, 6)]
    among = run_of(quiet, *loud)[0].wall
    assert among.low < 0.999 < 1.001 < among.high


def test_a_row_without_a_time_has_no_level():
    nothing, something = run_of(MadeUpRow("toy/fine/a"), MadeUpRow("toy/fine/b", 1.0))
    assert nothing.level is None
    assert something.level is not None


# --- one launch -----------------------------------------------------------------------------------------


def test_a_single_launch_has_the_allowance_of_the_method_and_is_marked():
    one, other = run_of(MadeUpRow("toy/fine/a", [1.0, 1.0]), MadeUpRow("toy/fine/b", [1.0, 1.0]))
    reach = 1.95996 * SINGLE_LAUNCH
    assert math.log(one.wall.high) == pytest.approx(reach, rel=1e-4)
    assert math.log(over(one, other).high) == pytest.approx(math.sqrt(2) * reach, rel=1e-4)
    assert one.row.uncertain


def test_a_single_launch_with_scattered_samples_has_a_wider_interval():
    calm, wild = run_of(MadeUpRow("toy/fine/a", [1.0] * 5), MadeUpRow("toy/fine/b", [0.7, 1.3, 0.8, 1.2, 1.0]))
    assert wild.wall.high / wild.wall.estimate > 1.03 * calm.wall.high


def test_where_other_rows_have_several_launches_theirs_is_the_allowance():
    generator = np.random.default_rng(3)
    many = [
        MadeUpRow(f"toy/fine/{number}", *([[float(np.exp(generator.normal(0, 0.01)))] * 5 for _ in range(3)]))
        for number in range(20)
    ]
    single = run_of(*many, MadeUpRow("toy/fine/once", [1.0] * 5))[-1]
    assert 1.015 < single.wall.high < 1.06
    assert not single.row.uncertain


# --- the same figures everywhere ------------------------------------------------------------------------


@pytest.fixture
def versions():
    """Eight systems, each in two versions, with three launches."""
    generator = np.random.default_rng(4)
    rows = []
    for number in range(8):
        for environment, wall in (("toy-1.0", 1.5), ("toy-2.0", 1.0)):
            blocks = [[wall * float(np.exp(generator.normal(0, 0.02)))] * 5 for _ in range(3)]
            rows.append(MadeUpRow(f"toy/fine/way-{number}", *blocks, environment=environment))
    return contents_of(*rows)


def test_tables_sentences_comparisons_and_histories_have_the_same_intervals(versions):
    measured = {(one.row.system, one.row.environment): one for one in measure_rows(versions)}
    old, new = measured["toy/fine/way-0", "toy-1.0"], measured["toy/fine/way-0", "toy-2.0"]
    expected = over(old, new)

    parts = [choose_environment(versions, name) for name in ("toy-2.0", "toy-1.0")]
    compared = next(one for one in compare_runs(*parts, across=["environment"]).cases if one.system.endswith("way-0"))
    assert (compared.ratio_low, compared.ratio, compared.ratio_high) == expected
    assert (compared.a_s, compared.b_s) == (new.row.wall_s, old.row.wall_s)

    (line,) = make_history(["run"], [versions], systems=["toy/fine/way-0"])
    point = line.points[0]
    assert (point.ratio_low, point.ratio, point.ratio_high) == expected
    assert (point.wall_low_s, point.wall_s, point.wall_high_s) == old.wall

    (group,) = analyse([versions]).groups
    (best,) = [row for row in make_rows(versions) if row.best]
    assert group.best.wall_s == (best.wall_low_s, best.wall_s, best.wall_high_s)
    slower = next(row for row in make_rows(versions) if (row.system, row.environment) == _named(group.best.next))
    assert group.best.next_ratio == (slower.ratio_low, slower.ratio, slower.ratio_high)


def _named(identity):
    return (identity.system, identity.environment)


def test_a_part_of_a_run_is_moderated_by_the_whole(versions):
    """Otherwise `compare RUN@a RUN@b` would disagree with `show RUN`."""
    part = choose_environment(versions, "toy-1.0")
    alone = msgspec.structs.replace(
        part, records=tuple(one for one in part.records if one.case.environment == "toy-1.0")
    )
    first = next(one for one in measure_rows(versions) if one.row.environment == "toy-1.0")
    assert measure_rows(part)[0].wall == first.wall
    assert measure_rows(alone)[0].wall != first.wall
