"""The intervals that conclusions rest on, tested on launches drawn from a known distribution."""

import numpy as np
import pytest

from analysis_runs import MadeUpRow, contents_of
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
    return run_of(*(MadeUpRow(system, *row) for system, row in zip(SYSTEMS, blocks, strict=False)))


def pairs(trials, launches, between, walls=(3.0, 2.0, 2.0, 2.0, 2.0, 2.0)):
    """The first row over the second, in many runs."""
    generator = np.random.default_rng(0)
    return [over(*drawn(generator, walls, launches, between)[:2]) for _ in range(trials)]


@pytest.mark.parametrize("launches", [2, 3])
@pytest.mark.parametrize("between", [0.01, 0.05])
def test_intervals_cover_the_truth_as_often_as_they_promise(launches, between):
    held = np.mean([one.low <= 1.5 <= one.high for one in pairs(300, launches, between)])
    assert held >= 0.92


def test_equal_rows_are_seldom_seen_to_differ():
    """At most one time in twenty, however much the launches vary."""
    for launches, between in ((1, 0.03), (2, 0.05), (3, 0.01), (3, 0.05), (3, 0.15)):
        verdicts = [difference_verdict(one) for one in pairs(200, launches, between, walls=[1.0] * 6)]
        assert verdicts.count("no difference seen") >= 0.95 * len(verdicts)


def test_a_large_difference_is_seen():
    verdicts = [difference_verdict(one) for one in pairs(100, 3, 0.02, walls=[1.15] + [1.0] * 5)]
    assert verdicts.count("slower") >= 90


def test_a_row_of_one_launch_may_be_off_by_its_allowance():
    one, other = run_of(MadeUpRow("toy/fine/a", [1.0, 1.0]), MadeUpRow("toy/fine/b", [1.0, 1.0]))
    alone = interval(1.0, one.draws)
    assert (alone.low, alone.high) == pytest.approx((1 / 1.1, 1.1))
    against = over(one, other)
    assert (against.low, against.high) == pytest.approx((1 / 1.21, 1.21))


def test_equal_launches_have_no_error_unless_those_of_other_rows_vary():
    quiet = MadeUpRow("toy/fine/quiet", 1.0)
    (alone,) = run_of(quiet)
    assert interval(1.0, alone.draws) == (1.0, 1.0, 1.0)
    # Two launches that happen to agree say less than ten that differ.
    loud = [MadeUpRow(f"toy/fine/{number}", [1.0], [1.0 + number / 20]) for number in range(1, 6)]
    among = interval(1.0, run_of(quiet, *loud)[0].draws)
    assert among.low < 1.0 < among.high


def test_replicates_are_reproducible_and_independent_between_rows():
    rows = [MadeUpRow("toy/fine/a", [1.0, 1.1], [1.2, 1.3]), MadeUpRow("toy/fine/b", [1.0, 1.1], [1.2, 1.3])]
    first, second = run_of(*rows)
    assert first.draws.tobytes() == run_of(*rows)[0].draws.tobytes()
    assert abs(np.corrcoef(first.draws, second.draws)[0, 1]) < 0.15


def test_rows_without_a_time_stay_as_they_are():
    nothing, something = run_of(MadeUpRow("toy/fine/a"), MadeUpRow("toy/fine/b", 1.0))
    assert nothing.draws is None
    assert something.draws is not None
