"""The four quick conclusions of Carrot (2019), tested on measured times and on the published ones.

A comparison counts as for any two rows: both are verified, and the whole interval lies beyond the noise threshold.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from rnnbench.analysis.row import Group, MeasuredRow, RowId, is_verified, row_id
from rnnbench.domain.result import Interval
from rnnbench.domain.system import version_key
from rnnbench.published.conclusions import CONCLUSIONS, Assertion, Quotient, Time
from rnnbench.published.rows import WITH_CONCLUSIONS, find_published
from rnnbench.stats import intervals
from rnnbench.stats.intervals import difference_verdict
from rnnbench.store import Contents

WORKLOAD = "ptb-lm"
PRECISION = "fp32"


ClaimVerdict = Literal["holds", "does not hold", "not measured"]


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """One time of a comparison: its published label, and the measured row that has it."""

    label: str  # `TF Graph (fine-grained operators)`
    phase: str
    device: str
    published_s: float | None
    group: Group | None = None  # None: no verified row
    row: RowId | None = None
    wall_s: Interval | None = None


class ClaimComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A quotient of times that the claim says is greater than 1: the product of `over` divided by that of `under`."""

    statement: str  # `TF Graph over PyTorch: fine-grained operators, forward, cpu`
    over: tuple[Factor, ...]
    under: tuple[Factor, ...]
    measured: Interval | None
    verdict: ClaimVerdict
    remark: str  # `no difference seen`, `the other way round`, or what is missing
    published: float | None
    published_verdict: ClaimVerdict


class ClaimPart(msgspec.Struct, frozen=True, kw_only=True):
    """One testable part of a claim. It holds when all of its comparisons hold, or any of them, as its rule says."""

    statement: str
    rule: Literal["all", "any"]
    comparisons: tuple[ClaimComparison, ...]
    verdict: ClaimVerdict
    published_verdict: ClaimVerdict


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One quick conclusion, quoted."""

    number: int
    text: str
    parts: tuple[ClaimPart, ...]
    verdict: ClaimVerdict  # holds only where all parts hold
    published_verdict: ClaimVerdict  # the same test on the published times, which have no intervals


Picked = dict[Time, tuple[Group, MeasuredRow]]


class LabelledRows:
    """The verified rows that carry the label of a published row, by workload and run."""

    def __init__(self, runs: Sequence[Contents], rows: Sequence[Sequence[MeasuredRow]]) -> None:
        self._rows: dict[tuple[str, int], dict[tuple[str, str, str], MeasuredRow]] = {}
        for number, (contents, measured) in enumerate(zip(runs, rows, strict=True)):
            labelled = [each for each in measured if each.row.seed_label and _is_comparable(contents, each)]
            environments = contents.run.environments
            # Oldest version first: where several rows have the same label, the newest one replaces the others.
            for each in sorted(labelled, key=lambda each: version_key(environments[each.row.environment].version)):
                key = (_plain(each.row.seed_label), each.row.phase, each.row.device)
                self._rows.setdefault((each.row.workload, number), {})[key] = each

    def pick(self, times: Iterable[Time]) -> Picked:
        """Measured rows for as many of these times as one workload has; those on one device come from one run.

        Within a device the rows must not come from two machines, or the quotient would compare the machines.
        """
        wanted = list(times)
        # The published sizes are preferred.
        names = sorted({workload for workload, _ in self._rows}, key=lambda name: (name != WORKLOAD, name))
        return max((self._pick_from_workload(name, wanted) for name in names), key=len, default={})

    def _pick_from_workload(self, name: str, times: list[Time]) -> Picked:
        runs = [run for workload, run in self._rows if workload == name]
        picked: Picked = {}
        for device in {time.device for time in times}:
            on_device = [time for time in times if time.device == device]
            most: Picked = max((self._pick_from_run(name, run, on_device) for run in runs), key=len)
            picked |= most
        return picked

    def _pick_from_run(self, name: str, run: int, times: list[Time]) -> Picked:
        rows = self._rows[name, run]
        measured = {time: rows.get((_plain(time.seed_label), time.phase, time.device)) for time in times}
        return {time: (Group(run, *each.row.group), each) for time, each in measured.items() if each is not None}


def _is_comparable(contents: Contents, measured: MeasuredRow) -> bool:
    workload = contents.run.workloads[measured.row.workload]
    is_published = workload.id == WORKLOAD and workload.cell == "lstm"
    return is_verified(measured.row) and measured.row.precision == PRECISION and is_published


def _plain(label: str) -> str:
    """Carrot writes `TF-Graph` in one table and `TF Graph` in the others."""
    return label.casefold().replace("tf-", "tf ")


def judge_claims(runs: Sequence[Contents], rows: Sequence[Sequence[MeasuredRow]]) -> tuple[Claim, ...]:
    """All four, over all runs together: one run may have the CPU's rows and another the GPU's."""
    labelled = LabelledRows(runs, rows)
    claims = []
    for conclusion in CONCLUSIONS:
        parts = tuple(_part(assertion, labelled) for assertion in conclusion.assertions)
        claims.append(
            Claim(
                number=conclusion.number,
                text=conclusion.text,
                parts=parts,
                verdict=_combine([part.verdict for part in parts]),
                published_verdict=_combine([part.published_verdict for part in parts]),
            )
        )
    return tuple(claims)


def _part(assertion: Assertion, labelled: LabelledRows) -> ClaimPart:
    comparisons = tuple(_compare(quotient, labelled) for quotient in assertion.quotients)
    return ClaimPart(
        statement=assertion.statement,
        rule=assertion.rule,
        comparisons=comparisons,
        verdict=_combine([each.verdict for each in comparisons], assertion.rule),
        published_verdict=_combine([each.published_verdict for each in comparisons], assertion.rule),
    )


def _combine(verdicts: Sequence[ClaimVerdict], rule: Literal["all", "any"] = "all") -> ClaimVerdict:
    """A decisive verdict counts even if others were not measured."""
    decisive: ClaimVerdict = "does not hold" if rule == "all" else "holds"
    if decisive in verdicts:
        return decisive
    if "not measured" in verdicts:
        return "not measured"
    return "holds" if rule == "all" else "does not hold"


def _compare(quotient: Quotient, labelled: LabelledRows) -> ClaimComparison:
    times = (*quotient.over, *quotient.under)
    picked = labelled.pick(times)
    missing = [time for time in times if time not in picked]
    measured = None if missing else _quotient(quotient, picked)
    if measured is None:
        verdict, remark = _NOT_MEASURED, "no verified row of " + "; ".join(map(_describe, missing))
    else:
        verdict, remark = _MEANING[difference_verdict(measured)]
    published = _published(quotient)
    published_verdict = _NOT_MEASURED
    if published is not None:
        published_verdict, _ = _MEANING[difference_verdict(Interval(published, published, published))]
    return ClaimComparison(
        statement=quotient.statement,
        over=tuple(_factor(time, picked) for time in quotient.over),
        under=tuple(_factor(time, picked) for time in quotient.under),
        measured=measured,
        verdict=verdict,
        remark=remark,
        published=published,
        published_verdict=published_verdict,
    )


_NOT_MEASURED: ClaimVerdict = "not measured"
_MEANING: dict[str, tuple[ClaimVerdict, str]] = {
    "slower": ("holds", ""),  # the claim says that the numerator takes longer
    "faster": ("does not hold", "the other way round"),
    "no difference seen": ("does not hold", "no difference seen"),
}


def _quotient(quotient: Quotient, picked: Picked) -> Interval:
    over = [picked[time][1].known_level for time in quotient.over]
    under = [picked[time][1].known_level for time in quotient.under]
    return intervals.quotient(over, under)


def _published(quotient: Quotient) -> float | None:
    over = [published_seconds(time) for time in quotient.over]
    under = [published_seconds(time) for time in quotient.under]
    if None in over or None in under:
        return None
    return math.prod(filter(None, over)) / math.prod(filter(None, under))


@lru_cache
def published_seconds(time: Time) -> float | None:
    """The printed time, from the document that draws the conclusions."""
    for row in find_published(WORKLOAD, time.phase, time.device, time.seed_label):
        if row.source == WITH_CONCLUSIONS:
            return row.wall_s
    return None


def _factor(time: Time, picked: Picked) -> Factor:
    group, measured = picked.get(time, (None, None))
    return Factor(
        label=time.seed_label,
        phase=time.phase,
        device=time.device,
        published_s=published_seconds(time),
        group=group,
        row=row_id(measured.row) if measured else None,
        wall_s=measured.wall if measured else None,
    )


def _describe(time: Time) -> str:
    return f"{time.seed_label}, {time.phase}, {time.device}"
