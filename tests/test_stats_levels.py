"""Comparing two measurements: the coverage of the intervals, on launches drawn from a known distribution.

The distribution, here and in docs/method.md: each launch has its own mean, and its blocks vary around it, both
normal on the log scale. A launch is sampled by the worker's own rule at standard effort, so that it has as many
samples as a real one.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnbench.domain.case import EFFORTS
from rnnbench.stats.intervals import difference_verdict
from rnnbench.stats.launch_means import launch_mean, moderate, ratio_intervals, student_95
from rnnbench_worker.clock import sample

STANDARD = EFFORTS["standard"]
THRESHOLD = 0.01


class Drawn:
    """Replaces a worker's runner: its blocks take made-up times."""

    def __init__(self, generator, mean, between, within):
        self._generator, self._within = generator, within
        self._level = mean * math.exp(generator.normal(0, between))

    def block(self, batches):
        return batches * self._level * math.exp(self._generator.normal(0, self._within))


def side(generator, mean=0.3, between=0.01, within=0.02, launches=STANDARD.launches):
    """One side of a comparison: a case measured at standard effort."""
    method = {"protocol": "adaptive", "timing": "throughput", "sample_seconds": STANDARD.sample_seconds}
    method["precision_target"] = STANDARD.precision_target
    taken = [sample(Drawn(generator, mean, between, within), method, mean) for _ in range(launches)]
    return launch_mean([(sum(size for size, _ in samples), sum(took for _, took in samples)) for samples in taken])


def verdicts(seed, trials, cases, change=1.0, **noise):
    """The verdicts of `trials` comparisons, in runs of `cases` cases."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(trials // cases):
        pairs = [(side(generator, **noise), side(generator, mean=0.3 * change, **noise)) for _ in range(cases)]
        found += [difference_verdict(ratio, THRESHOLD) for ratio in ratio_intervals(pairs)]
    return found


# --- how often verdicts are right -----------------------------------------------------------------------


@pytest.mark.parametrize("cases", [1, 5, 50])
def test_equal_times_are_called_different_in_at_most_5_of_100_trials(cases):
    found = verdicts(1, 1000, cases)
    assert len(found) == 1000
    assert sum(one != "no difference seen" for one in found) <= 50


@pytest.mark.parametrize("noise", [{"between": 0.04}, {"between": 0.0}, {"within": 0.03, "between": 0.02}])
def test_equal_times_are_rarely_called_different_however_noisy_the_machine_is(noise):
    assert sum(one != "no difference seen" for one in verdicts(2, 1000, 10, **noise)) <= 50


@pytest.mark.parametrize(("change", "word"), [(1.05, "slower"), (1 / 1.05, "faster")])
def test_a_true_difference_of_5_percent_is_found_in_90_of_100_trials_at_2_percent_noise(change, word):
    found = verdicts(3, 1000, 5, change)
    assert sum(one == word for one in found) >= 900


def test_a_single_case_is_found_slower_as_often_if_its_launches_agree_within_half_a_percent():
    """Without other cases, three launches must estimate their own variance: that costs power, not coverage."""
    assert sum(one == "slower" for one in verdicts(4, 1000, 1, 1.05, between=0.005)) >= 900


def test_intervals_contain_the_truth_19_times_in_20():
    generator = np.random.default_rng(5)
    held = []
    for _ in range(50):
        pairs = [(side(generator, between=0.03), side(generator, mean=0.6, between=0.03)) for _ in range(10)]
        held += [ratio.low <= 2.0 <= ratio.high for ratio in ratio_intervals(pairs)]
    assert 0.92 <= np.mean(held) <= 0.98


def test_cases_with_different_noise_keep_their_own():
    """Half of the cases are five times as noisy as the others: with one variance, they would seem to differ."""
    generator = np.random.default_rng(6)
    wrong = {0.01: 0, 0.05: 0}
    for _ in range(25):
        kinds = [0.01, 0.05] * 20
        pairs = [(side(generator, between=kind), side(generator, between=kind)) for kind in kinds]
        for kind, ratio in zip(kinds, ratio_intervals(pairs), strict=True):
            wrong[kind] += difference_verdict(ratio, THRESHOLD) != "no difference seen"
    assert sum(wrong.values()) <= 50


# --- launch means and ratios ----------------------------------------------------------------------------


def test_the_log_wall_is_the_wall_time_of_the_tables():
    made = launch_mean([(10, 2.0), (30, 3.0)])
    assert math.exp(made.log_wall) == pytest.approx(5.0 / 40)
    assert made.freedom == 1
    assert made.share == pytest.approx(0.25**2 + 0.75**2)


def test_two_single_launches_have_no_interval_but_one_against_three_has():
    single, three = launch_mean([(1, 1.0)]), launch_mean([(1, 1.0), (1, 1.1), (1, 0.9)])
    assert ratio_intervals([(single, single)]) == [None]
    (with_three,) = ratio_intervals([(single, three)])
    assert with_three.low < with_three.estimate < with_three.high
    assert ratio_intervals([]) == []


def test_a_ratio_uses_students_t():
    """Two launches on each side, calculated by hand: pooled variance of the logarithms, two degrees of freedom."""
    base, other = launch_mean([(1, 1.0), (1, math.exp(0.1))]), launch_mean([(1, 2.0), (1, 2 * math.exp(0.2))])
    (ratio,) = ratio_intervals([(base, other)])
    variance = (0.1**2 / 2 + 0.2**2 / 2) / 2
    reach = 4.3027 * math.sqrt(variance * (0.5 + 0.5))
    assert math.log(ratio.high / ratio.estimate) == pytest.approx(reach, rel=1e-4)
    assert math.log(ratio.estimate / ratio.low) == pytest.approx(reach, rel=1e-4)


LAUNCHES = st.lists(st.tuples(st.integers(1, 50), st.floats(1e-6, 1e3)), min_size=1, max_size=5)


@settings(deadline=None)
@given(st.lists(st.tuples(LAUNCHES, LAUNCHES), max_size=6))
def test_exchanging_the_sides_inverts_every_ratio(pairs):
    levels = [(launch_mean(base), launch_mean(other)) for base, other in pairs]
    back = ratio_intervals([(other, base) for base, other in levels])
    for there, again in zip(ratio_intervals(levels), back, strict=True):
        if there is None:
            assert again is None
            continue
        assert there.low <= there.estimate <= there.high
        for one, other in zip(there, reversed(again), strict=True):
            assert math.log(one) == pytest.approx(-math.log(other), abs=1e-9)


@settings(deadline=None)
@given(st.lists(LAUNCHES, max_size=6))
def test_a_measurement_never_differs_from_itself(cases):
    levels = [launch_mean(launches) for launches in cases]
    for ratio in ratio_intervals([(one, one) for one in levels]):
        assert ratio is None or (ratio.estimate == 1.0 and difference_verdict(ratio, 0.0) == "no difference seen")


# --- the parts ------------------------------------------------------------------------------------------


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


def test_similar_variances_become_one_and_different_ones_stay():
    generator = np.random.default_rng(7)
    freedoms = np.full(500, 4.0)
    alike, known = moderate(generator.chisquare(4, 500) / 4, freedoms)
    assert np.ptp(alike) < 0.4
    assert known.min() > 40
    spread = np.exp(generator.normal(0, 4, 500))
    unlike, known = moderate(spread * generator.chisquare(4, 500) / 4, freedoms)
    assert known.max() < 5.0
    assert np.corrcoef(np.log(unlike), np.log(spread))[0, 1] > 0.95


def test_moderated_variances_have_no_more_degrees_of_freedom_than_were_measured():
    _, known = moderate(np.array([1.0, 1.1, 0.9]), np.array([4.0, 4.0, 4.0]))
    assert known.tolist() == [12.0] * 3
    variances, known = moderate(np.array([2.0]), np.array([4.0]))
    assert (variances.tolist(), known.tolist()) == ([2.0], [4.0])


def test_launches_without_any_variance_are_accepted():
    variances, known = moderate(np.array([0.0, 0.0, 1.0]), np.array([2.0, 2.0, 2.0]))
    assert variances.tolist() == [0.0, 0.0, 1.0]
    assert known.tolist() == [2.0] * 3
