"""How stable a run was: drift within launches, rounds that differ, the machine's speed. `check` judges by these."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np

from rnnbench.analysis.case_results import CaseResult, find_case_results
from rnnbench.analysis.nodes import probes_of_nodes
from rnnbench.analysis.rows import make_rows
from rnnbench.analysis.steadiness import DRIFT
from rnnbench.domain.case import Case
from rnnbench.domain.result import Interval, Launch
from rnnbench.domain.run import Run
from rnnbench.stats.intervals import SpeedVerdict, difference_verdict, interval_around
from rnnbench.store import Contents

WIDE = 0.05  # half an interval, as a share of the time


class TimedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row with its launches and the width of its interval."""

    key: str
    launches: tuple[Launch, ...]
    half_width: float  # of the interval, as a share of the time
    uncertain: bool
    steady: bool
    above_limit: bool
    checked: str  # at full size

    @property
    def launches_differ(self) -> bool:
        """Whether the launches differ by more than their samples explain."""
        launches = [np.array([sample.seconds / sample.batches for sample in one.samples]) for one in self.launches]
        if len(launches) < 2:
            return False
        means = np.array([times.mean() for times in launches])
        explained = np.mean([times.var(ddof=1) / len(times) if len(times) > 1 else 0.0 for times in launches])
        return bool(means.var(ddof=1) > 2 * explained)


class RunQuality:
    """What the checks look at, computed once."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.run: Run = contents.run
        self.results: list[CaseResult] = list(find_case_results(contents))

    @cached_property
    def timed_rows(self) -> list[TimedRow]:
        """The rows with a time, without those that are wrong."""
        rows = make_rows(self.contents)
        timed = []
        for result, row in zip(self.results, rows[: len(self.results)], strict=True):
            if row.status not in ("verified", "unverified") or row.wall_s is None:
                continue
            assert row.wall_low_s is not None
            assert row.wall_high_s is not None
            half = (row.wall_high_s - row.wall_low_s) / 2 / row.wall_s
            timed.append(
                TimedRow(
                    key=result.case.key,
                    launches=result.launches,
                    half_width=half,
                    uncertain=row.uncertain,
                    steady=row.steady is not False,
                    above_limit=row.above_limit,
                    checked=row.checked,
                )
            )
        return timed

    @property
    def wide_rows(self) -> list[TimedRow]:
        return [row for row in self.timed_rows if row.half_width > WIDE]

    @cached_property
    def rows_by_node(self) -> dict[str, list[tuple[Launch, ...]]]:
        """The launches of the timed rows. Rounds on two nodes are not at the same time, nor on the same machine."""
        rows: dict[str, list[tuple[Launch, ...]]] = {}
        for row in self.timed_rows:
            rows.setdefault(row.launches[0].node, []).append(row.launches)
        return rows

    @cached_property
    def probes(self) -> dict[str, list[float]]:
        """Of the launches that count, oldest first. One that was repeated on a quieter machine is in no figure."""
        counting = {_attempt(launch) for row in self.timed_rows for launch in row.launches}
        return probes_of_nodes(
            record for record in self.contents.records if isinstance(record, Launch) and _attempt(record) in counting
        )

    @property
    def noisy_rows(self) -> list[TimedRow]:
        return [row for row in self.timed_rows if any(launch.noisy for launch in row.launches)]

    @property
    def set_aside(self) -> int:
        """How many launches do not count, because the machine was busy."""
        return sum(len(result.all_launches) - len(result.launches) for result in self.results)


def _attempt(launch: Launch) -> tuple[str, int, int]:
    return launch.case.key, launch.round, launch.attempt


def unsettled_cases(contents: Contents) -> tuple[Case, ...]:
    """The cases whose intervals are wide, or that have too few quiet launches: more of them help both."""
    quality = RunQuality(contents)
    unsettled = {row.key for row in [*quality.wide_rows, *quality.noisy_rows]}
    return tuple(case for case in contents.run.cases if case.key in unsettled)


_FEWEST_ROWS = 5  # for a round to be judged as a whole


class OddRound(NamedTuple):
    """The round that differs most from the others."""

    number: int
    rounds: int
    ratio: Interval  # of its times to the others'
    verdict: SpeedVerdict


class ProbeChange(NamedTuple):
    spread: float  # how much longer the slowest tenth took than the fastest
    trend: float  # the median of the last third over that of the first, less one


def can_judge_rounds(rows: Sequence[Sequence[Launch]]) -> bool:
    """Whether enough rows have several rounds."""
    return sum(len(launches) > 1 for launches in rows) >= _FEWEST_ROWS


def odd_round(rows: Sequence[Sequence[Launch]]) -> OddRound | None:
    """The round that differs most from the others over all rows, if any does beyond noise."""
    times = [{launch.round: math.log(launch.seconds / launch.batches) for launch in launches} for launches in rows]
    numbers = sorted({number for row in times for number in row})
    rounds: list[OddRound] = []
    for number in numbers:
        departures = np.array(
            [
                row[number] - np.mean([time for other, time in row.items() if other != number])
                for row in times
                if number in row and len(row) > 1
            ]
        )
        if len(departures) < _FEWEST_ROWS:
            continue
        error = float(departures.std(ddof=1)) / math.sqrt(len(departures))
        ratio = interval_around(float(departures.mean()), error, len(departures) - 1)
        rounds.append(OddRound(number, len(numbers), ratio, difference_verdict(ratio, DRIFT)))
    odd = [each for each in rounds if each.verdict != "no difference seen"]
    return max(odd, key=lambda each: abs(math.log(each.ratio.estimate)), default=None)


def probe_change(probes: Sequence[float]) -> ProbeChange | None:
    """How the machine's speed changed, from the times of the fixed computation. None where there are too few."""
    if len(probes) < 2:
        return None
    fast, slow = np.quantile(probes, (0.1, 0.9))
    third = max(1, len(probes) // 3)
    trend = float(np.median(probes[-third:]) / np.median(probes[:third]))
    return ProbeChange(float(slow / fast) - 1, trend - 1)
