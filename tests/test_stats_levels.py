"""Comparing two measurements: intervals that hold what they promise, on launches drawn from a known law.

The law, here and in docs/method.md: each launch has a level of its own, and its blocks vary about that, both
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
    """Stands for a worker's runner: its blocks take made-up times."""

    def __init__(self, generator, mean, between, within):
        self._generator, self._within = generator, within
        self._level = mean * math.exp(generator.normal(0, between))

    def block(self, batches):
        return batches * self._level * math.exp(self._generator.normal(0, self._within))


def side(generator, mean=0.3, between=0.01, within=0.02, launches=STANDARD.launches):
    """One case, measured as at standard effort."""
    method = {"protocol": "adaptive", "timing": "throughput", "sample_seconds": STANDARD.sample_seconds}
    method["precision_target"] = STANDARD.precision_target
    taken = [sample(Drawn(generator, mean, between, within), method, mean) for _ in range(launches)]
    return launch_mean([(sum(size for size, _ in samples), sum(took for _, took in samples)) for samples in taken])


def verdicts(seed, trials, cases, change=1.0, **noise):
    """So many comparisons, in runs of so many cases."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(trials // cases):
        pairs = [(side(generator, **noise), side(generator, mean=0.3 * change, **noise)) for _ in range(cases)]
        found += [difference_verdict(ratio, THRESHOLD) for ratio in ratio_intervals(pairs)]
    return found


# --- what the verdicts promise --------------------------------------------------------------------------


@pytest.mark.parametrize("cases", [1, 5, 50])
def test_no_true_difference_is_called_one_in_at_most_5_of_100_trials(cases):
    found = verdicts(1, 1000, cases)
    assert len(found) == 1000
    assert sum(one != "no difference seen" for one in found) <= 50


@pytest.mark.parametrize("noise", [{"between": 0.04}, {"between": 0.0}, {"within": 0.03, "between": 0.02}])
def test_however_noisy_the_machine_is(noise):
    assert sum(one != "no difference seen" for one in verdicts(2, 1000, 10, **noise)) <= 50


@pytest.mark.parametrize(("change", "word"), [(1.05, "slower"), (1 / 1.05, "faster")])
def test_a_true_difference_of_5_percent_is_found_in_90_of_100_trials_at_2_percent_noise(change, word):
    found = verdicts(3, 1000, 5, change)
    assert sum(one == word for one in found) >= 900


def test_a_case_alone_is_found_slower_as_often_where_its_launches_agree_within_half_a_percent():
    """Without other cases three launches must tell their own spread: that costs power, never honesty."""
    assert sum(one == "slower" for one in verdicts(4, 1000, 1, 1.05, between=0.005)) >= 900


def test_intervals_hold_the_truth_19_times_in_20():
    generator = np.random.default_rng(5)
    held = []
    for _ in range(50):
        pairs = [(side(generator, between=0.03), side(generator, mean=0.6, between=0.03)) for _ in range(10)]
        held += [ratio.low <= 2.0 <= ratio.high for ratio in ratio_intervals(pairs)]
    assert 0.92 <= np.mean(held) <= 0.98


def test_cases_that_are_truly_unlike_keep_their_own_noise():
    """Half of the cases five times as noisy as the others: drawn all together, those would seem to differ."""
    generator = np.random.default_rng(6)
    wrong = {0.01: 0, 0.05: 0}
    for _ in range(25):
        kinds = [0.01, 0.05] * 20
        pairs = [(side(generator, between=kind), side(generator, between=kind)) for kind in kinds]
        for kind, ratio in zip(kinds, ratio_intervals(pairs), strict=True):
            wrong[kind] += difference_verdict(ratio, THRESHOLD) != "no difference seen"
    assert sum(wrong.values()) <= 50


# --- levels and ratios ----------------------------------------------------------------------------------


def test_a_level_is_the_wall_time_of_the_tables():
    made = launch_mean([(10, 2.0), (30, 3.0)])
    assert math.exp(made.log_wall) == pytest.approx(5.0 / 40)
    assert made.freedom == 1
    assert made.share == pytest.approx(0.25**2 + 0.75**2)


def test_two_single_launches_have_no_interval_but_one_beside_three_has():
    single, three = launch_mean([(1, 1.0)]), launch_mean([(1, 1.0), (1, 1.1), (1, 0.9)])
    assert ratio_intervals([(single, single)]) == [None]
    (with_three,) = ratio_intervals([(single, three)])
    assert with_three.low < with_three.estimate < with_three.high
    assert ratio_intervals([]) == []


def test_a_ratio_is_by_students_t():
    """Two launches on each side, by hand: pooled variance of the logarithms, two degrees of freedom."""
    base, other = launch_mean([(1, 1.0), (1, math.exp(0.1))]), launch_mean([(1, 2.0), (1, 2 * math.exp(0.2))])
    (ratio,) = ratio_intervals([(base, other)])
    variance = (0.1**2 / 2 + 0.2**2 / 2) / 2
    reach = 4.3027 * math.sqrt(variance * (0.5 + 0.5))
    assert math.log(ratio.high / ratio.estimate) == pytest.approx(reach, rel=1e-4)
    assert math.log(ratio.estimate / ratio.low) == pytest.approx(reach, rel=1e-4)


LAUNCHES = st.lists(st.tuples(st.integers(1, 50), st.floats(1e-6, 1e3)), min_size=1, max_size=5)


@settings(deadline=None)
@given(st.lists(st.tuples(LAUNCHES, LAUNCHES), max_size=6))
def test_turned_round_every_ratio_is_upside_down(pairs):
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
def test_a_measurement_beside_itself_is_never_different(cases):
    levels = [launch_mean(launches) for launches in cases]
    for ratio in ratio_intervals([(one, one) for one in levels]):
        assert ratio is None or (ratio.estimate == 1.0 and difference_verdict(ratio, 0.0) == "no difference seen")


# --- the parts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("freedom", "point"), [(1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (20, 2.086), (120, 1.980), (1e9, 1.960)]
)
def test_students_points_are_those_of_the_tables(freedom, point):
    assert student_95(freedom) == pytest.approx(point, abs=6e-4)


def test_students_points_fall_all_the_way_and_never_below_the_normals():
    points = [student_95(1 + step / 10) for step in range(300)] + [student_95(math.inf)]
    assert points == sorted(points, reverse=True)
    assert points[-1] == pytest.approx(1.959964)
    with pytest.raises(ValueError, match="degrees of freedom"):
        student_95(0.5)


def test_alike_variances_become_one_and_unlike_ones_stay():
    generator = np.random.default_rng(7)
    freedoms = np.full(500, 4.0)
    alike, known = moderate(generator.chisquare(4, 500) / 4, freedoms)
    assert np.ptp(alike) < 0.4
    assert known.min() > 40
    spread = np.exp(generator.normal(0, 4, 500))
    unlike, known = moderate(spread * generator.chisquare(4, 500) / 4, freedoms)
    assert known.max() < 5.0
    assert np.corrcoef(np.log(unlike), np.log(spread))[0, 1] > 0.95


def test_moderated_variances_know_no_more_than_was_measured():
    _, known = moderate(np.array([1.0, 1.1, 0.9]), np.array([4.0, 4.0, 4.0]))
    assert known.tolist() == [12.0] * 3
    variances, known = moderate(np.array([2.0]), np.array([4.0]))
    assert (variances.tolist(), known.tolist()) == ([2.0], [4.0])


def test_launches_without_any_spread_are_no_trouble():
    variances, known = moderate(np.array([0.0, 0.0, 1.0]), np.array([2.0, 2.0, 2.0]))
    assert variances.tolist() == [0.0, 0.0, 1.0]
    assert known.tolist() == [2.0] * 3
