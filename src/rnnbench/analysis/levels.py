"""The level of each case: its launches' log times, with the spread of all cases of the run.

Everything that prints a time or a ratio of a run has it from here, so that the same case has the same figures in
tables, sentences, comparisons, histories and charts.
"""

import math
from collections.abc import Sequence

from rnnbench.analysis.case_results import find_measured_launches
from rnnbench.domain.result import Launch
from rnnbench.stats.launch_means import Level, Spread, level_of, spread_of
from rnnbench.store import Contents


def find_spread(contents: Contents) -> Spread | None:
    """How much the launches of a case differ in this run; None where too few cases have several."""
    return spread_of([log_times(launches) for launches in find_measured_launches(contents)])


def find_level(launches: Sequence[Launch], spread: Spread | None) -> Level:
    """Of one measured case."""
    alone = launches[0].samples if len(launches) == 1 else ()
    return level_of(log_times(launches), [math.log(one.seconds / one.batches) for one in alone], spread)


def log_times(launches: Sequence[Launch]) -> list[float]:
    """The logarithm of each launch's seconds per batch."""
    return [math.log(launch.seconds / launch.batches) for launch in launches]
