"""The interval: levels of launches, their moderated spread, ratios, shares and break-even, calculated by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnbench.domain.result import Interval
from rnnbench.stats.intervals import break_even, difference_verdict, interval_of, quotient, ratio, share_of_gap
from rnnbench.stats.launch_means import Level, Spread, level_of, mean_over_cases, spread_of
from rnnbench.stats.student import student_95


def level(*times, spread=None):
    return level_of([math.log(time) for time in times], (), spread)


def known(time, error=0.0):
    return Level(math.log(time), error, math.inf, math.inf)


# --- a time ---------------------------------------------------------------------------------------------


def test_a_time_is_the_geometric_mean_of_its_launches_with_students_t():
    found = level(1.0, math.exp(0.1))
    error = 0.1 / math.sqrt(2) / math.sqrt(2)
    assert (found.log, found.error, found.freedom) == pytest.approx((0.05, error, 1.0))
    assert math.log(interval_of(found).high) == pytest.approx(0.05 + 12.7062 * error)


def test_a_variance_is_moderated_by_what_is_usual():
    spread = Spread(variance=0.01, freedom=3.0)
    found = level(1.0, 1.0, spread=spread)  # two launches that happen to agree
    assert (found.freedom, found.own) == (4.0, 1.0)
    assert found.error == pytest.approx(math.sqrt(3 * 0.01 / 4 / 2))


LAUNCHES = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=5)


@settings(deadline=None)
@given(LAUNCHES, LAUNCHES)
def test_exchanging_the_sides_inverts_a_ratio(base, other):
    there, again = ratio(level(*other), level(*base)), ratio(level(*base), level(*other))
    assert there.low <= there.estimate <= there.high
    for one, inverse in zip(there, reversed(again), strict=True):
        assert math.log(one) == pytest.approx(-math.log(inverse), abs=1e-9)


@settings(deadline=None)
@given(LAUNCHES)
def test_a_measurement_never_differs_from_itself(launches):
    found = ratio(level(*launches), level(*launches))
    assert found.estimate == 1.0
    assert difference_verdict(found, 0.0) == "no difference seen"


def test_launches_that_have_nothing_in_common_have_an_interval_without_end_not_an_error():
    low, _, high = interval_of(level(1e-300, 1e300))
    assert low < 1e-300
    assert high > 1e300


# --- ratios ---------------------------------------------------------------------------------------------


def test_a_ratio_is_a_difference_of_logs_with_satterthwaites_degrees_of_freedom():
    base, other = level(1.0, math.exp(0.1)), level(2.0, 2 * math.exp(0.1))
    error = math.hypot(base.error, other.error)
    assert math.log(ratio(other, base).high) == pytest.approx(math.log(2) + 4.3027 * error)  # two degrees of freedom
    # What only one side knows badly decides alone.
    assert math.log(ratio(other, known(1.0)).high) == pytest.approx(math.log(2) + 0.05 + 12.7062 * other.error)


def test_one_case_on_both_sides_adds_up_what_they_know():
    base, other = level(1.0, math.exp(0.2)), level(2.0, 2 * math.exp(0.01))  # Satterthwaite: little more than one
    reach = math.log(ratio(other, base, alike=True).high / ratio(other, base).estimate)
    assert reach == pytest.approx(4.3027 * math.hypot(base.error, other.error))
    assert ratio(other, base).high > ratio(other, base, alike=True).high
    lent = [Level(0.0, 0.01, 5.0, 2.0), Level(0.0, 0.01, 6.0, 2.0)]
    assert math.log(ratio(*lent, alike=True).high) == pytest.approx(student_95(2 + 2 + 4) * math.hypot(0.01, 0.01))
    assert ratio(known(2.0, 0.1), base, alike=True).high > 2


def test_what_other_cases_lend_counts_once():
    lent = Level(0.0, 0.01, 11.0, 1.0)  # one degree of its own and ten lent
    reach = math.log(ratio(lent, lent).high) / math.hypot(0.01, 0.01)
    assert reach == pytest.approx(student_95(11.0))
    assert reach > student_95(22.0)


def test_a_quotient_of_four_times_has_the_errors_of_all():
    found = quotient([known(6.0, 0.03), known(2.0, 0.04)], [known(3.0), known(2.0)])
    assert found.estimate == pytest.approx(2.0)
    assert math.log(found.high / found.estimate) == pytest.approx(1.95996 * 0.05, rel=1e-4)


@pytest.mark.parametrize(
    ("low", "high", "word"), [(1.03, 1.2, "slower"), (0.8, 0.97, "faster"), (1.01, 1.5, "no difference seen")]
)
def test_a_difference_counts_if_its_whole_interval_lies_beyond_2_percent(low, high, word):
    assert difference_verdict(Interval(low, (low + high) / 2, high)) == word


@pytest.mark.parametrize(
    ("low", "high", "uncertain"),
    [(0.95, 1.05, False), (0.84, 1.19, False), (0.84, 1.21, True), (0.82, 1.1, True), (1.0, 1.0, False)],
)
def test_a_figure_is_uncertain_beyond_20_percent(low, high, uncertain):
    assert Interval(2 * low, 2.0, 2 * high).uncertain == uncertain


# --- shares and break-even ------------------------------------------------------------------------------


def simulated(function, *levels):
    generator = np.random.default_rng(0)
    draws = [each.log + each.error * generator.standard_normal(200_000) for each in levels]
    return np.quantile(function(*draws), (0.025, 0.975))


def test_the_share_of_a_gap_has_the_interval_of_its_errors():
    other, slow, fast = known(4.0, 0.05), known(8.0, 0.03), known(2.0, 0.02)
    found = share_of_gap(other, slow, fast)
    assert found.estimate == pytest.approx(0.5)
    expected = simulated(lambda it, high, low: (high - it) / (high - low), other, slow, fast)
    assert (found.low, found.high) == pytest.approx(expected, abs=0.003)


def test_a_gap_that_may_be_nothing_has_no_shares():
    assert share_of_gap(known(1.1, 0.05), known(1.2, 0.2), known(1.0, 0.2)) is None


def test_break_even_has_the_interval_of_its_errors():
    fast, slow = known(0.5, 0.02), known(1.0, 0.03)
    found = break_even(10.0, fast, slow)
    assert found.estimate == pytest.approx(20.0)
    expected = simulated(lambda it, eager: 10.0 / (np.exp(eager) - np.exp(it)), fast, slow)
    assert (found.low, found.high) == pytest.approx(expected, rel=0.02)
    assert break_even(0.0, fast, slow) == (0.0, 0.0, 0.0)


# --- the spread of a run --------------------------------------------------------------------------------


def drawn_cases(sizes, launches=5):
    generator = np.random.default_rng(7)
    return [list(size * generator.standard_normal(launches)) for size in sizes]


def test_cases_that_are_alike_lend_much_and_cases_that_are_not_lend_little():
    alike = spread_of(drawn_cases([0.02] * 200))
    assert math.sqrt(alike.variance) == pytest.approx(0.02, rel=0.15)
    assert alike.freedom > 15
    sizes = np.exp(np.random.default_rng(8).normal(0, 2, 200))
    assert spread_of(drawn_cases(sizes)).freedom < 2


def test_few_cases_lend_little_however_alike_they_look():
    assert spread_of(drawn_cases([0.02] * 2)) is None
    assert spread_of(drawn_cases([0.02] * 5)).freedom <= 1.0


def test_cases_with_one_launch_or_without_any_variance_say_nothing():
    assert spread_of([[0.1]] * 20) is None
    assert spread_of([[0.1, 0.1]] * 20) is None
    assert spread_of([]) is None


def test_the_mean_over_cases_has_the_error_of_its_rounds():
    """A round that was slower as a whole widens it, however many cases there are."""
    cases = [level(1.0, 1.1) for _ in range(50)]
    found = mean_over_cases(cases, [{0: 0.0, 1: math.log(1.1)}] * 50)
    assert found.freedom == 1.0
    assert found.error == pytest.approx(math.log(1.1) / 2)
    assert mean_over_cases(cases, [{0: 0.0}] * 50) is None


# --- Student's t ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("freedom", "point"), [(1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (20, 2.086), (120, 1.980), (1e9, 1.960)]
)
def test_students_points_are_those_of_the_tables(freedom, point):
    assert student_95(freedom) == pytest.approx(point, abs=6e-4)


def test_students_points_decrease_and_stay_above_the_normal_one():
    points = [student_95(1 + step / 10) for step in range(300)] + [student_95(math.inf)]
    assert points == sorted(points, reverse=True)
    assert points[-1] == pytest.approx(1.959964)
    with pytest.raises(ValueError, match="degrees of freedom"):
        student_95(0.5)
