"""The level of each case: its launches' log times, with the spread of all cases that were measured on its machine.

Everything that prints a time or a ratio of a run has it from here, so that the same case has the same figures in
tables, sentences, comparisons, histories and charts.
"""

import math
from collections.abc import Mapping, Sequence

from rnnbench.analysis.case_results import find_measured_launches
from rnnbench.domain.result import Launch
from rnnbench.stats.launch_means import Level, Spread, level_of, spread_of
from rnnbench.store import Contents

#: By node; a local run has one without a name. A node where too few cases have several launches is not in it.
Spreads = Mapping[str, Spread]


def find_spreads(contents: Contents) -> Spreads:
    """How much the launches of a case differ on each machine of this run."""
    logs: dict[str, list[list[float]]] = {}
    for launches in find_measured_launches(contents):
        logs.setdefault(launches[0].node, []).append(log_times(launches))
    found = {node: spread_of(cases) for node, cases in logs.items()}
    return {node: spread for node, spread in found.items() if spread is not None}


def find_level(launches: Sequence[Launch], spreads: Spreads) -> Level:
    """Of one measured case."""
    alone = launches[0].samples if len(launches) == 1 else ()
    spread = spreads.get(launches[0].node)
    return level_of(log_times(launches), [math.log(one.seconds / one.batches) for one in alone], spread)


def log_times(launches: Sequence[Launch]) -> list[float]:
    """The logarithm of each launch's seconds per batch."""
    return [math.log(launch.seconds / launch.batches) for launch in launches]
