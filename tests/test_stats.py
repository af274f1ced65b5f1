"""The statistics: the estimate, its interval, and ratios, on numbers with a known truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnbench.stats import intervals as bootstrap
from rnnbench.stats.intervals import Series, interval, ratio, replicates, wall_time


def series(*seconds, batches=1):
    """One launch, whose blocks took these seconds."""
    return Series(np.full(len(seconds), float(batches)), np.array(seconds, np.float64))


def measured(launches):
    return interval(wall_time(launches), replicates(launches))


def drawn(generator, launches, samples, mean=1.0, between=0.05, within=0.02):
    """Realistic launches: each has its own mean, and its blocks vary around it."""
    levels = generator.normal(mean, between * mean, launches)
    return [series(*generator.normal(level, within * mean, samples)) for level in levels]


def test_the_wall_time_is_all_seconds_over_all_batches():
    assert wall_time([series(1.0, 2.0), series(6.0)]) == 3.0
    assert wall_time([series(1.0, 2.0, batches=10)]) == 0.15
    # a long block counts for more than a short one
    assert wall_time([series(1.0, batches=1), series(1.0, batches=9)]) == 0.2


LAUNCHES = st.lists(
    st.lists(st.tuples(st.integers(1, 50), st.floats(1e-6, 1e3)), min_size=1, max_size=6), min_size=1, max_size=4
)


@settings(deadline=None, max_examples=50)
@given(LAUNCHES)
def test_the_interval_contains_the_estimate_and_stays_within_the_samples(launches):
    made = [Series(*np.array(launch, np.float64).T) for launch in launches]
    per_batch = np.concatenate([one.seconds / one.batches for one in made])
    low, estimate, high = measured(made)
    assert low <= estimate <= high
    assert estimate == wall_time(made)
    assert per_batch.min() * (1 - 1e-9) <= low
    assert high <= per_batch.max() * (1 + 1e-9)


def test_identical_samples_have_an_interval_of_zero_width():
    low, estimate, high = measured([series(*[0.25] * 10, batches=4)] * 3)
    assert (low, estimate, high) == (0.0625, 0.0625, 0.0625)


def test_one_launch_works_and_so_does_one_sample():
    low, estimate, high = measured([series(0.9, 1.0, 1.1, 1.0, 1.0)])
    assert 0.9 < low < estimate < high < 1.1
    assert measured([series(2.0)]) == (2.0, 2.0, 2.0)


def test_launches_may_have_different_numbers_of_samples():
    low, estimate, high = measured([series(1.0), series(1.2, 1.2, 1.2, 1.2), series(1.1, 1.1)])
    assert estimate == pytest.approx((1.0 + 4.8 + 2.2) / 7)
    assert low < estimate < high


def test_launches_that_disagree_widen_the_interval_however_many_samples_each_has():
    """The process is the unit of sampling: three launches are three draws, however many samples they have."""
    agreeing = measured([series(*[1.0, 1.01] * 100) for _ in range(3)])
    disagreeing = measured([series(*[level, level + 0.01] * 100) for level in (0.9, 1.0, 1.1)])
    assert agreeing.high - agreeing.low < 0.005
    assert disagreeing.high - disagreeing.low > 0.1


def test_more_launches_narrow_the_interval():
    generator = np.random.default_rng(1)
    few, many = (
        np.mean([high - low for low, _, high in (measured(drawn(generator, count, 10)) for _ in range(20))])
        for count in (3, 12)
    )
    assert many < 0.75 * few


def test_the_interval_has_about_its_nominal_coverage():
    generator = np.random.default_rng(0)
    intervals = [measured(drawn(generator, launches=8, samples=10)) for _ in range(200)]
    held = np.mean([low <= 1.0 <= high for low, _, high in intervals])
    assert 0.85 <= held <= 0.99


def test_the_interval_of_a_ratio_has_about_its_nominal_coverage():
    generator = np.random.default_rng(2)
    held = 0
    for _ in range(200):
        slow, fast = drawn(generator, 8, 10, mean=3.0), drawn(generator, 8, 10, mean=2.0)
        against = ratio(wall_time(slow), replicates(slow), wall_time(fast), replicates(fast))
        held += against.low <= 1.5 <= against.high
    assert 0.85 <= held / 200 <= 0.99


def test_the_ratio_of_a_series_to_itself_is_about_one():
    launches = drawn(np.random.default_rng(3), 5, 10)
    wall, draws = wall_time(launches), replicates(launches)
    low, estimate, high = ratio(wall, draws, wall, draws)
    assert estimate == 1.0
    assert low < 1.0 < high  # two measurements of the same program would differ by as much
    assert low > 0.8
    assert high < 1.25


def test_the_two_sides_of_a_ratio_are_drawn_independently():
    """Both come from the same random numbers; without a shift, two equal series would not seem to vary."""
    launches = drawn(np.random.default_rng(4), 5, 10)
    wall, draws = wall_time(launches), replicates(launches)
    alone = interval(wall, draws)
    against = ratio(wall, draws, wall, draws)
    assert against.high - against.low > 1.1 * (alone.high - alone.low) / wall


def test_scaling_one_side_scales_the_ratio():
    slow = drawn(np.random.default_rng(5), 3, 8)
    fast = [Series(one.batches, one.seconds / 4) for one in slow]
    against = ratio(wall_time(slow), replicates(slow), wall_time(fast), replicates(fast))
    assert against.estimate == pytest.approx(4.0)
    assert against.low < 4.0 < against.high


def test_the_same_numbers_give_the_same_interval_always():
    launches = drawn(np.random.default_rng(6), 4, 7)
    first = measured(launches)
    for name in ("_sample_weights", "_launch_draws"):
        getattr(bootstrap, name).cache_clear()
    np.random.seed(0)  # global state must have no effect
    assert measured(launches) == first
