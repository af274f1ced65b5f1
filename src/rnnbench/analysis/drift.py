"""Whether the machine changed while it was measured: within launches, from round to round, over the run."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rnnbench.domain.result import Launch
from rnnbench.stats.bootstrap import Interval
from rnnbench.stats.difference import Verdict, judge
from rnnbench.stats.levels import around

DRIFT = 0.02  # smaller changes are noise
_FEWEST = 5  # rows, for a round to be judged as a whole


class OddRound(NamedTuple):
    """The round furthest from the others."""

    number: int
    rounds: int
    ratio: Interval  # its times over the others'
    verdict: Verdict


class ProbeChange(NamedTuple):
    spread: float  # how much longer the slowest tenth took than the fastest
    trend: float  # the median of the last third over that of the first, less one


def within_launches(launches: Sequence[Launch]) -> Verdict:
    """The later half of a row's samples beside the earlier one, each launch about its own mean."""
    early: list[float] = []
    late: list[float] = []
    for launch in launches:
        times = np.log([sample.seconds / sample.batches for sample in launch.samples])
        half = len(times) // 2
        centred = (times - times.mean()).tolist()
        early += centred[:half]
        late += centred[len(times) - half :]
    freedom = 2 * len(early) - 1 - len(launches)  # the launches' means were taken from the samples too
    if freedom < 1:
        return "no difference seen"
    squares = sum(((np.array(half) - np.mean(half)) ** 2).sum() for half in (early, late))
    error = math.sqrt(squares / freedom * 2 / len(early))
    return judge(around(float(np.mean(late) - np.mean(early)), error, freedom), DRIFT)


def can_judge_rounds(rows: Sequence[Sequence[Launch]]) -> bool:
    """Whether there are several rounds and enough rows in them to tell one round from the others."""
    return sum(len(launches) > 1 for launches in rows) >= _FEWEST


def odd_round(rows: Sequence[Sequence[Launch]]) -> OddRound | None:
    """The round that differs most from the others over all rows, if any does beyond noise."""
    times = [{launch.round: math.log(launch.seconds / launch.batches) for launch in launches} for launches in rows]
    numbers = sorted({number for row in times for number in row})
    found: list[OddRound] = []
    for number in numbers:
        departures = np.array(
            [
                row[number] - np.mean([time for other, time in row.items() if other != number])
                for row in times
                if number in row and len(row) > 1
            ]
        )
        if len(departures) < _FEWEST:
            continue
        error = float(departures.std(ddof=1)) / math.sqrt(len(departures))
        ratio = around(float(departures.mean()), error, len(departures) - 1)
        found.append(OddRound(number, len(numbers), ratio, judge(ratio, DRIFT)))
    odd = [one for one in found if one.verdict != "no difference seen"]
    return max(odd, key=lambda one: abs(math.log(one.ratio.estimate)), default=None)


def probe_change(probes: Sequence[float]) -> ProbeChange | None:
    """From the times of the fixed computation at each launch, in order; None where there are too few."""
    if len(probes) < 2:
        return None
    fast, slow = np.quantile(probes, (0.1, 0.9))
    third = max(1, len(probes) // 3)
    trend = float(np.median(probes[-third:]) / np.median(probes[:third]))
    return ProbeChange(float(slow / fast) - 1, trend - 1)
