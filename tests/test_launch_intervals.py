"""The replicates that conclusions rest on: as unsure as the launches leave one, on launches drawn from a known law."""

import numpy as np
import pytest

from analysis_runs import Told, contents_of
from rnnbench.analysis.launch_intervals import with_launch_intervals
from rnnbench.analysis.row import over
from rnnbench.analysis.rows import measure_rows
from rnnbench.stats.intervals import difference_verdict, interval

SYSTEMS = [f"toy/fine/way-{number}" for number in range(6)]


def run_of(*rows):
    return with_launch_intervals(measure_rows(contents_of(*rows)), allowance=0.1)


def drawn(generator, walls, launches, between, within=0.02, samples=6):
    """Rows whose launches differ by `between` and their blocks by `within`, as shares of their time."""
    levels = [wall * np.exp(generator.normal(0, between, launches)) for wall in walls]
    blocks = [[list(level * np.exp(generator.normal(0, within, samples))) for level in row] for row in levels]
    return run_of(*(Told(system, *row) for system, row in zip(SYSTEMS, blocks, strict=False)))


def pairs(trials, launches, between, walls=(3.0, 2.0, 2.0, 2.0, 2.0, 2.0)):
    """The first row over the second, in many runs."""
    generator = np.random.default_rng(0)
    return [over(*drawn(generator, walls, launches, between)[:2]) for _ in range(trials)]


@pytest.mark.parametrize("launches", [2, 3])
@pytest.mark.parametrize("between", [0.01, 0.05])
def test_an_interval_holds_the_truth_as_often_as_it_says(launches, between):
    held = np.mean([one.low <= 1.5 <= one.high for one in pairs(300, launches, between)])
    assert held >= 0.92


def test_rows_that_are_alike_are_seldom_told_apart():
    """Whatever the launches vary by: at most one time in twenty."""
    for launches, between in ((1, 0.03), (2, 0.05), (3, 0.01), (3, 0.05), (3, 0.15)):
        verdicts = [difference_verdict(one) for one in pairs(200, launches, between, walls=[1.0] * 6)]
        assert verdicts.count("no difference seen") >= 0.95 * len(verdicts)


def test_what_is_far_apart_is_told():
    verdicts = [difference_verdict(one) for one in pairs(100, 3, 0.02, walls=[1.15] + [1.0] * 5)]
    assert verdicts.count("slower") >= 90


def test_a_row_of_one_launch_may_be_off_by_its_allowance():
    one, other = run_of(Told("toy/fine/a", [1.0, 1.0]), Told("toy/fine/b", [1.0, 1.0]))
    alone = interval(1.0, one.draws)
    assert (alone.low, alone.high) == pytest.approx((1 / 1.1, 1.1))
    against = over(one, other)
    assert (against.low, against.high) == pytest.approx((1 / 1.21, 1.21))


def test_launches_that_agree_leave_no_doubt_and_those_of_others_do_where_they_vary():
    quiet = Told("toy/fine/quiet", 1.0)
    (alone,) = run_of(quiet)
    assert interval(1.0, alone.draws) == (1.0, 1.0, 1.0)
    # Two launches that happen to agree to the last digit know less than ten that do not.
    loud = [Told(f"toy/fine/{number}", [1.0], [1.0 + number / 20]) for number in range(1, 6)]
    among = interval(1.0, run_of(quiet, *loud)[0].draws)
    assert among.low < 1.0 < among.high


def test_the_same_run_gives_the_same_replicates_and_every_row_has_its_own():
    rows = [Told("toy/fine/a", [1.0, 1.1], [1.2, 1.3]), Told("toy/fine/b", [1.0, 1.1], [1.2, 1.3])]
    first, second = run_of(*rows)
    assert first.draws.tobytes() == run_of(*rows)[0].draws.tobytes()
    assert abs(np.corrcoef(first.draws, second.draws)[0, 1]) < 0.15


def test_rows_without_a_time_stay_as_they_are():
    nothing, something = run_of(Told("toy/fine/a"), Told("toy/fine/b", 1.0))
    assert nothing.draws is None
    assert something.draws is not None
