"""What a run shows of its own quality: everything the checks look at, computed once."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np

from rnnbench.analysis.case_results import CaseResult, find_case_results
from rnnbench.analysis.rows import make_rows
from rnnbench.domain.result import Interval, Launch
from rnnbench.domain.run import Run
from rnnbench.stats.intervals import SpeedVerdict, difference_verdict
from rnnbench.stats.launch_means import interval_around
from rnnbench.store import Contents


class TimedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that has a time."""

    key: str
    launches: tuple[Launch, ...]
    half_width: float  # of the interval, as a share of the time

    @property
    def launches_differ(self) -> bool:
        """Whether they lie further apart than their samples explain."""
        times = [np.array([one.seconds / one.batches for one in launch.samples]) for launch in self.launches]
        if len(times) < 2:
            return False
        means = np.array([one.mean() for one in times])
        explained = np.mean([one.var(ddof=1) / len(one) if len(one) > 1 else 0.0 for one in times])
        return bool(means.var(ddof=1) > 2 * explained)


class Evidence:
    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.run: Run = contents.run
        self.all: list[CaseResult] = list(find_case_results(contents))

    @cached_property
    def measured(self) -> list[TimedRow]:
        """Rows with a time that is shown as one; a wrong row's is not."""
        rows = make_rows(self.contents)
        found = []
        for result, row in zip(self.all, rows[: len(self.all)], strict=True):
            if row.status not in ("verified", "unverified") or row.wall_s is None:
                continue
            assert row.wall_low_s is not None
            assert row.wall_high_s is not None
            half = (row.wall_high_s - row.wall_low_s) / 2 / row.wall_s
            found.append(TimedRow(key=result.case.key, launches=result.launches, half_width=half))
        return found

    @property
    def probes(self) -> list[float]:
        """The fixed computation's time at each launch, in the order they were made; the quieter of two."""
        return [
            min(record.probe_before_s, record.probe_after_s)
            for record in self.contents.records
            if isinstance(record, Launch) and record.probe_before_s and record.probe_after_s
        ]


DRIFT = 0.02  # smaller changes are noise
_FEWEST = 5  # rows, for a round to be judged as a whole


class OddRound(NamedTuple):
    """The round furthest from the others."""

    number: int
    rounds: int
    ratio: Interval  # its times over the others'
    verdict: SpeedVerdict


class ProbeChange(NamedTuple):
    spread: float  # how much longer the slowest tenth took than the fastest
    trend: float  # the median of the last third over that of the first, less one


def within_launches(launches: Sequence[Launch]) -> SpeedVerdict:
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
    return difference_verdict(interval_around(float(np.mean(late) - np.mean(early)), error, freedom), DRIFT)


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
        ratio = interval_around(float(departures.mean()), error, len(departures) - 1)
        found.append(OddRound(number, len(numbers), ratio, difference_verdict(ratio, DRIFT)))
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
