"""How often the tool's 95 % intervals contain the truth, on simulated runs: the table of docs/analysis.md.

The truth is the expected log mean of a launch. A launch has a level of its own, which varies from launch to launch by
an amount that differs between cases, and blocks that vary around it; what happens within it (outliers, drift) is part
of its level. Coverage is that of the intervals of times and of the ratios of neighbouring cases, by the functions that
the tables use. `--quick` makes a tenth of the runs.
"""

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rnnbench.analysis.stability import WIDE
from rnnbench.stats.intervals import interval_of, ratio
from rnnbench.stats.launch_means import Level, level_of, spread_of

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]

LAUNCHES = (2, 3, 5, 10)
CASES = (1, 3, 10, 40)
BLOCKS = 7  # of a launch: the median of standard effort
INTERVALS = 8000  # of each figure, whose standard error is then a quarter of a percent
ALLOWED = (0.93, 0.97)


def blocks(generator: np.random.Generator, cases: int, launches: int, levels: Floats) -> Floats:
    """[case, launch, block]: log times that vary by 2 % around the levels of the launches."""
    return levels[:, :, None] + generator.normal(0, 0.02, (cases, launches, BLOCKS))


def between(generator: np.random.Generator, cases: int, scatter: float) -> Floats:
    """The standard deviation between the launches of each case: 2 % in the middle."""
    return 0.02 * np.exp(scatter * generator.standard_normal(cases))


def log_means(times: Floats) -> Floats:
    means: Floats = np.log(np.exp(times).mean(axis=2))
    return means


def alike(generator: np.random.Generator, cases: int, launches: int) -> Floats:
    """Launches of every case differ by 2 %."""
    levels = generator.normal(0, 0.02, (cases, launches))
    return log_means(blocks(generator, cases, launches, levels)) - SHIFT


def different(generator: np.random.Generator, cases: int, launches: int, scatter: float = 0.7) -> Floats:
    """Cases differ in how much their launches do: the middle two thirds by 1 to 4 %."""
    levels = between(generator, cases, scatter)[:, None] * generator.standard_normal((cases, launches))
    return log_means(blocks(generator, cases, launches, levels)) - SHIFT


def two_kinds(generator: np.random.Generator, cases: int, launches: int) -> Floats:
    """Half of the cases are five times as noisy as the others."""
    sizes = np.where(generator.random(cases) < 0.5, 0.01, 0.05)
    levels = sizes[:, None] * generator.standard_normal((cases, launches))
    return log_means(blocks(generator, cases, launches, levels)) - SHIFT


def heavy_tails(generator: np.random.Generator, cases: int, launches: int) -> Floats:
    """Launches with the tails of Student's t with four degrees of freedom."""
    levels = between(generator, cases, 0.5)[:, None] * generator.standard_t(4, (cases, launches)) / np.sqrt(2)
    return log_means(blocks(generator, cases, launches, levels)) - SHIFT


def outliers(generator: np.random.Generator, cases: int, launches: int) -> Floats:
    """One block in twenty takes a quarter longer: it is part of its launch's mean, and of the truth."""
    levels = between(generator, cases, 0.5)[:, None] * generator.standard_normal((cases, launches))
    times = blocks(generator, cases, launches, levels)
    slow = generator.random(times.shape) < 0.05
    return log_means(times + np.log(1.25) * slow) - OUTLIER_SHIFT


def drift(generator: np.random.Generator, cases: int, launches: int) -> Floats:
    """Each launch gets slower by 5 % while it is sampled, which is part of the truth."""
    levels = between(generator, cases, 0.5)[:, None] * generator.standard_normal((cases, launches))
    times = blocks(generator, cases, launches, levels) + np.log(1.05) * np.linspace(-0.5, 0.5, BLOCKS)
    return log_means(times) - DRIFT_SHIFT


def rounds_drift(generator: np.random.Generator, cases: int, launches: int) -> Floats:
    """The machine gets slower by 2 % from the first round to the last, for all cases: the truth is the middle."""
    trend = 0.02 * np.linspace(-0.5, 0.5, launches)
    return different(generator, cases, launches, 0.5) + trend


def rare_launches(generator: np.random.Generator, cases: int, launches: int) -> Floats:
    """One launch in twenty takes 10 % longer. A few launches that hold none cannot know of it."""
    slow = 0.1 * (generator.random((cases, launches)) < 0.05)
    return different(generator, cases, launches, 0.5) + slow - 0.005


def expected(shape: Callable[[np.random.Generator], Floats]) -> float:
    """Of the log mean of a launch at level 0, by simulation: the mean of blocks is a little above their median."""
    generator = np.random.default_rng(1)
    return float(log_means(shape(generator)).mean())


def _plain(generator: np.random.Generator) -> Floats:
    return blocks(generator, 100_000, 1, np.zeros((100_000, 1)))


def _with_outliers(generator: np.random.Generator) -> Floats:
    times = _plain(generator)
    slow: Floats = times + np.log(1.25) * (generator.random(times.shape) < 0.05)
    return slow


SHIFT = expected(_plain)
OUTLIER_SHIFT = expected(_with_outliers)
DRIFT_SHIFT = expected(lambda generator: _plain(generator) + np.log(1.05) * np.linspace(-0.5, 0.5, BLOCKS))

SCENARIOS: dict[str, Draw] = {
    "launches of all cases differ alike": alike,
    "cases differ in how much": different,
    "half of the cases five times as noisy": two_kinds,
    "heavy tails": heavy_tails,
    "outliers within launches": outliers,
    "drift within launches": drift,
    "drift over rounds": rounds_drift,
    "one launch in twenty 10 % slower": rare_launches,
}


def levels_of(log_times: Floats | list[list[float]]) -> list[Level]:
    """As the tables have them."""
    cases = log_times if isinstance(log_times, list) else log_times.tolist()
    spread = spread_of(cases)
    return [level_of(logs, (), spread) for logs in cases]


def coverage(draw: Draw, cases: int, launches: int, intervals: int, seed: int = 0) -> tuple[float, float]:
    """The share of intervals that hold the truth, of times and of ratios."""
    generator = np.random.default_rng((seed, cases, launches))
    times: list[bool] = []
    ratios: list[bool] = []
    while len(times) < intervals:
        # A ratio needs two cases: a case alone in its run is compared with one alone in another run.
        if cases > 1:
            levels = levels_of(draw(generator, cases, launches))
        else:
            levels = [levels_of(draw(generator, 1, launches))[0] for _ in range(2)]
        times += [interval.low <= 1 <= interval.high for interval in map(interval_of, levels)]
        pairs = zip(levels[::2], levels[1::2], strict=False)
        ratios += [found.low <= 1 <= found.high for found in (ratio(one, other) for one, other in pairs)]
    return float(np.mean(times)), float(np.mean(ratios))


def coverage_of_repeats(cases: int, launches: int, intervals: int) -> float:
    """Of the ratios of a case in two runs, whose launches vary alike, where cases differ in how much."""
    generator = np.random.default_rng((2, cases, launches))
    held: list[bool] = []
    while len(held) < intervals:
        sizes = between(generator, cases, 0.7)[:, None]
        first, second = (levels_of(sizes * generator.standard_normal((cases, launches))) for _ in range(2))
        found = (ratio(one, other, alike=True) for one, other in zip(first, second, strict=True))
        held += [interval.low <= 1 <= interval.high for interval in found]
    return float(np.mean(held))


def coverage_of_more_launches(cases: int, launches: int, intervals: int) -> float:
    """Of times, where half of the cases are five times as noisy, and cases with a wide interval got so many launches.

    The others have three: this is `run --resume RUN --launches N`.
    """
    generator = np.random.default_rng((3, cases, launches))
    held: list[bool] = []
    while len(held) < intervals:
        drawn = two_kinds(generator, cases, launches)
        first = map(interval_of, levels_of(drawn[:, :3]))
        wide = [interval.high - interval.low > 2 * WIDE * interval.estimate for interval in first]
        kept = [logs if more else logs[:3] for logs, more in zip(drawn.tolist(), wide, strict=True)]
        held += [interval.low <= 1 <= interval.high for interval in map(interval_of, levels_of(kept))]
    return float(np.mean(held))


def main() -> None:
    intervals = INTERVALS // 10 if "--quick" in sys.argv else INTERVALS
    print("| launches vary | cases | " + " | ".join(f"{count} launches" for count in LAUNCHES) + " |")
    print("|---|--:|" + "--:|" * len(LAUNCHES))
    outside = []
    for name, draw in SCENARIOS.items():
        for cases in CASES:
            found = [coverage(draw, cases, launches, intervals) for launches in LAUNCHES]
            cells = [f"{100 * time:.1f} / {100 * one:.1f}" for time, one in found]
            print(f"| {name} | {cases} | {' | '.join(cells)} |")
            outside += [
                f"{name}, {cases} cases, {launches} launches: {what} {100 * share:.1f} %"
                for launches, shares in zip(LAUNCHES, found, strict=True)
                for what, share in zip(("times", "ratios"), shares, strict=True)
                if not ALLOWED[0] <= share <= ALLOWED[1]
            ]
    for cases in CASES:
        repeats = [f"{100 * coverage_of_repeats(cases, launches, intervals):.1f}" for launches in LAUNCHES]
        print(f"| the same case in two runs: the ratio | {cases} | {' | '.join(repeats)} |")
    for cases in CASES[1:]:
        more = [f"{100 * coverage_of_more_launches(cases, launches, intervals):.1f}" for launches in (5, 10)]
        print(f"| three launches, so many where that was wide | {cases} | | | {' | '.join(more)} |")
    print("\nCoverage in percent: of times / of ratios. Outside 93 to 97 %:")
    print("\n".join(outside) or "none")


if __name__ == "__main__":
    main()
