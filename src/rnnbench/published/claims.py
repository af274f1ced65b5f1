"""The four quick conclusions of seed 000 as tests over what was measured, each beside the published figures.

A comparison counts as it does for any two rows: both verified, and the whole interval beyond the noise.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec
import numpy as np

from rnnbench.analysis.row import Group, MeasuredRow, RowId, is_verified, row_id
from rnnbench.domain.result import Interval
from rnnbench.domain.system import version_key
from rnnbench.published.conclusions import CONCLUSIONS, Assertion, Quotient, Time
from rnnbench.published.rows import find_published
from rnnbench.stats.intervals import difference_verdict, independent_draws, interval
from rnnbench.store import Contents

WORKLOAD = "ptb-lm"
PRECISION = "fp32"
Picked = dict[Time, tuple[Group, MeasuredRow]]


class LabelledRows:
    """The verified rows with a seed's label, by workload and run."""

    def __init__(self, runs: Sequence[Contents], rows: Sequence[Sequence[MeasuredRow]]) -> None:
        self._rows: dict[tuple[str, int], dict[tuple[str, str, str], MeasuredRow]] = {}
        for number, (contents, measured) in enumerate(zip(runs, rows, strict=True)):
            named = [one for one in measured if one.row.seed_label and _can_stand(contents, one)]
            environments = contents.run.environments
            # In order of version: where a label is there in several, the newest one stands.
            for one in sorted(named, key=lambda one: version_key(environments[one.row.environment].version)):
                key = (_plain(one.row.seed_label), one.row.phase, one.row.device)
                self._rows.setdefault((one.row.workload, number), {})[key] = one

    def pick(self, times: Iterable[Time]) -> Picked:
        """As many of these times as can be had of one workload, those on one device from one run.

        Two machines must not meet within a device: the quotient would compare the machines.
        """
        wanted = list(times)
        # The seed's own sizes before any others.
        names = sorted({workload for workload, _ in self._rows}, key=lambda name: (name != WORKLOAD, name))
        return max((self._of_workload(name, wanted) for name in names), key=len, default={})

    def _of_workload(self, name: str, times: list[Time]) -> Picked:
        runs = [run for workload, run in self._rows if workload == name]
        picked: Picked = {}
        for device in {time.device for time in times}:
            here = [time for time in times if time.device == device]
            most: Picked = max((self._of_run(name, run, here) for run in runs), key=len)
            picked |= most
        return picked

    def _of_run(self, name: str, run: int, times: list[Time]) -> Picked:
        rows = self._rows[name, run]
        found = {time: rows.get((_plain(time.seed_label), time.phase, time.device)) for time in times}
        return {time: (Group(run, *one.row.group), one) for time, one in found.items() if one is not None}


@lru_cache
def published_seconds(time: Time) -> float | None:
    """The entry itself, from the seed the conclusions are of."""
    for row in find_published(WORKLOAD, time.phase, time.device, time.seed_label):
        if row.source == "seed-000":
            return row.wall_s
    return None


def _can_stand(contents: Contents, one: MeasuredRow) -> bool:
    workload = contents.run.workloads[one.row.workload]
    return is_verified(one.row) and one.row.precision == PRECISION and workload.id == WORKLOAD


def _plain(label: str) -> str:
    """The seed writes `TF-Graph` in one table and `TF Graph` in the others."""
    return label.casefold().replace("tf-", "tf ")


ClaimVerdict = Literal["holds", "does not hold", "not measured"]


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """One time that goes into a comparison: what the seed calls it, and where it was found."""

    label: str  # `TF Graph (fine-grained operators)`
    phase: str
    device: str
    published_s: float | None
    group: Group | None = None  # None: no verified row
    row: RowId | None = None
    wall_s: Interval | None = None


class ClaimComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A quotient of times that the claim says is greater than 1: the product of `over` by that of `under`."""

    statement: str  # `TF Graph over PyTorch: fine-grained operators, forward, cpu`
    over: tuple[Factor, ...]
    under: tuple[Factor, ...]
    measured: Interval | None
    verdict: ClaimVerdict
    remark: str  # `no difference seen`, `the other way round`, or what is missing
    published: float | None
    published_verdict: ClaimVerdict


class ClaimPart(msgspec.Struct, frozen=True, kw_only=True):
    """One testable part of a claim. It holds when all of its comparisons hold or, where it says so, any of them."""

    statement: str
    rule: Literal["all", "any"]
    comparisons: tuple[ClaimComparison, ...]
    verdict: ClaimVerdict
    published_verdict: ClaimVerdict


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One quick conclusion, in the seed's own words."""

    number: int
    text: str
    parts: tuple[ClaimPart, ...]
    verdict: ClaimVerdict  # holds only where all parts hold
    published_verdict: ClaimVerdict  # the same test on the seed's own tables, which have no intervals


def judge_claims(runs: Sequence[Contents], rows: Sequence[Sequence[MeasuredRow]]) -> tuple[Claim, ...]:
    """All four, over all runs together: a CPU's and a GPU's may be two."""
    found = LabelledRows(runs, rows)
    claims = []
    for conclusion in CONCLUSIONS:
        parts = tuple(_part(assertion, found) for assertion in conclusion.assertions)
        claims.append(
            Claim(
                number=conclusion.number,
                text=conclusion.text,
                parts=parts,
                verdict=_together([part.verdict for part in parts]),
                published_verdict=_together([part.published_verdict for part in parts]),
            )
        )
    return tuple(claims)


def _part(assertion: Assertion, found: LabelledRows) -> ClaimPart:
    comparisons = tuple(_compare(quotient, found) for quotient in assertion.quotients)
    return ClaimPart(
        statement=assertion.statement,
        rule=assertion.rule,
        comparisons=comparisons,
        verdict=_together([one.verdict for one in comparisons], assertion.rule),
        published_verdict=_together([one.published_verdict for one in comparisons], assertion.rule),
    )


def _together(verdicts: Sequence[ClaimVerdict], rule: Literal["all", "any"] = "all") -> ClaimVerdict:
    """One that decides the matter decides it whatever was not measured."""
    decisive: ClaimVerdict = "does not hold" if rule == "all" else "holds"
    if decisive in verdicts:
        return decisive
    if "not measured" in verdicts:
        return "not measured"
    return "holds" if rule == "all" else "does not hold"


def _compare(quotient: Quotient, found: LabelledRows) -> ClaimComparison:
    times = (*quotient.over, *quotient.under)
    picked = found.pick(times)
    missing = [time for time in times if time not in picked]
    measured = None if missing else _quotient(quotient, picked)
    if measured is None:
        verdict, remark = _MISSING, "no verified row of " + "; ".join(map(_describe, missing))
    else:
        verdict, remark = _MEANING[difference_verdict(measured)]
    published = _published(quotient)
    said = _MISSING if published is None else _MEANING[difference_verdict(Interval(published, published, published))][0]
    return ClaimComparison(
        statement=quotient.statement,
        over=tuple(_factor(time, picked) for time in quotient.over),
        under=tuple(_factor(time, picked) for time in quotient.under),
        measured=measured,
        verdict=verdict,
        remark=remark,
        published=published,
        published_verdict=said,
    )


_MISSING: ClaimVerdict = "not measured"
_MEANING: dict[str, tuple[ClaimVerdict, str]] = {
    "slower": ("holds", ""),  # what stands above takes longer: the claim says so
    "faster": ("does not hold", "the other way round"),
    "no difference seen": ("does not hold", "no difference seen"),
}


def _quotient(quotient: Quotient, picked: Picked) -> Interval:
    over = [picked[time][1] for time in quotient.over]
    under = [picked[time][1] for time in quotient.under]
    draws = independent_draws(*(one.draws for one in (*over, *under) if one.draws is not None))
    above, below = np.prod(draws[: len(over)], axis=0), np.prod(draws[len(over) :], axis=0)
    estimate = math.prod(one.wall.estimate for one in over) / math.prod(one.wall.estimate for one in under)
    return interval(estimate, above / below)


def _published(quotient: Quotient) -> float | None:
    over = [published_seconds(time) for time in quotient.over]
    under = [published_seconds(time) for time in quotient.under]
    if None in over or None in under:
        return None
    return math.prod(filter(None, over)) / math.prod(filter(None, under))


def _factor(time: Time, picked: Picked) -> Factor:
    group, one = picked.get(time, (None, None))
    return Factor(
        label=time.seed_label,
        phase=time.phase,
        device=time.device,
        published_s=published_seconds(time),
        group=group,
        row=row_id(one.row) if one else None,
        wall_s=one.wall if one else None,
    )


def _describe(time: Time) -> str:
    return f"{time.seed_label}, {time.phase}, {time.device}"
