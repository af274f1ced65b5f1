"""Comparing two runs: how often verdicts are right, on launches drawn from a known distribution.

The distribution, here and in docs/method.md: each launch has its own mean, and its blocks vary around it, both
normal on the log scale. A launch is sampled by the worker's own rule at standard effort, so that it has as many
samples as a real one.
"""

import math

import numpy as np
import pytest

from rnnbench.domain.case import EFFORTS
from rnnbench.stats.intervals import difference_verdict, ratio
from rnnbench.stats.launch_means import level_of, spread_of
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
    return [math.log(sum(took for _, took in samples) / sum(size for size, _ in samples)) for samples in taken]


def ratios(pairs):
    """B over A of each case, as `compare` has them: each run is moderated by itself."""
    runs = []
    for cases in zip(*pairs, strict=True):
        spread = spread_of(cases)
        runs.append([level_of(logs, (), spread) for logs in cases])
    return [ratio(b, a, alike=True) for a, b in zip(*runs, strict=True)]


def verdicts(seed, trials, cases, change=1.0, **noise):
    """The verdicts of `trials` comparisons, in runs of `cases` cases."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(trials // cases):
        pairs = [(side(generator, **noise), side(generator, mean=0.3 * change, **noise)) for _ in range(cases)]
        found += [difference_verdict(one, THRESHOLD) for one in ratios(pairs)]
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
@pytest.mark.parametrize(("cases", "least"), [(5, 800), (20, 900)])
def test_a_true_difference_of_5_percent_is_mostly_found_at_2_percent_noise(change, word, cases, least):
    found = verdicts(3, 1000, cases, change)
    assert sum(one == word for one in found) >= least


def test_a_single_case_is_found_slower_as_often_if_its_launches_agree_within_half_a_percent():
    """Without other cases, three launches must estimate their own variance: that costs power, not coverage."""
    assert sum(one == "slower" for one in verdicts(4, 1000, 1, 1.05, between=0.005)) >= 900


def test_intervals_contain_the_truth_19_times_in_20():
    generator = np.random.default_rng(5)
    held = []
    for _ in range(50):
        pairs = [(side(generator, between=0.03), side(generator, mean=0.6, between=0.03)) for _ in range(10)]
        held += [one.low <= 2.0 <= one.high for one in ratios(pairs)]
    assert 0.92 <= np.mean(held) <= 0.98


def test_cases_with_different_noise_keep_their_own():
    """Half of the cases are five times as noisy as the others: with one variance, they would seem to differ."""
    generator = np.random.default_rng(6)
    wrong = {0.01: 0, 0.05: 0}
    for _ in range(25):
        kinds = [0.01, 0.05] * 20
        pairs = [(side(generator, between=kind), side(generator, between=kind)) for kind in kinds]
        for kind, one in zip(kinds, ratios(pairs), strict=True):
            wrong[kind] += difference_verdict(one, THRESHOLD) != "no difference seen"
    assert sum(wrong.values()) <= 50
