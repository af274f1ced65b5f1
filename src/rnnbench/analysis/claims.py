"""The four quick conclusions of seed 000 as tests over what was measured, each beside the published figures.

A comparison counts as it does for any two rows: both verified, and the whole interval beyond the noise.
"""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from rnnbench.analysis.conclusions import CONCLUSIONS, Assertion, Quotient, Time
from rnnbench.analysis.names import Group, Who, who
from rnnbench.analysis.rows import Measured
from rnnbench.analysis.seed_rows import Picked, SeedRows, published_seconds
from rnnbench.stats.bootstrap import Interval, independent, interval
from rnnbench.stats.difference import judge
from rnnbench.store.folder import Contents

Verdict = Literal["holds", "does not hold", "not measured"]


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """One time that goes into a comparison: what the seed calls it, and where it was found."""

    label: str  # `TF Graph (fine-grained operators)`
    phase: str
    device: str
    published_s: float | None
    group: Group | None = None  # None: no verified row
    row: Who | None = None
    wall_s: Interval | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A quotient of times that the claim says is greater than 1: the product of `over` by that of `under`."""

    statement: str  # `TF Graph over PyTorch: fine-grained operators, forward, cpu`
    over: tuple[Factor, ...]
    under: tuple[Factor, ...]
    measured: Interval | None
    verdict: Verdict
    remark: str  # `no difference seen`, `the other way round`, or what is missing
    published: float | None
    published_verdict: Verdict


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One testable part of a claim. It holds when all of its comparisons hold or, where it says so, any of them."""

    statement: str
    rule: Literal["all", "any"]
    comparisons: tuple[Comparison, ...]
    verdict: Verdict
    published_verdict: Verdict


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One quick conclusion, in the seed's own words."""

    number: int
    text: str
    parts: tuple[Part, ...]
    verdict: Verdict  # holds only where all parts hold
    published_verdict: Verdict  # the same test on the seed's own tables, which have no intervals


def judge_claims(runs: Sequence[Contents], rows: Sequence[Sequence[Measured]]) -> tuple[Claim, ...]:
    """All four, over all runs together: a CPU's and a GPU's may be two."""
    found = SeedRows(runs, rows)
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


def _part(assertion: Assertion, found: SeedRows) -> Part:
    comparisons = tuple(_compare(quotient, found) for quotient in assertion.quotients)
    return Part(
        statement=assertion.statement,
        rule=assertion.rule,
        comparisons=comparisons,
        verdict=_together([one.verdict for one in comparisons], assertion.rule),
        published_verdict=_together([one.published_verdict for one in comparisons], assertion.rule),
    )


def _together(verdicts: Sequence[Verdict], rule: Literal["all", "any"] = "all") -> Verdict:
    """One that decides the matter decides it whatever was not measured."""
    decisive: Verdict = "does not hold" if rule == "all" else "holds"
    if decisive in verdicts:
        return decisive
    if "not measured" in verdicts:
        return "not measured"
    return "holds" if rule == "all" else "does not hold"


def _compare(quotient: Quotient, found: SeedRows) -> Comparison:
    times = (*quotient.over, *quotient.under)
    picked = found.pick(times)
    missing = [time for time in times if time not in picked]
    measured = None if missing else _quotient(quotient, picked)
    if measured is None:
        verdict, remark = _MISSING, "no verified row of " + "; ".join(map(_describe, missing))
    else:
        verdict, remark = _MEANING[judge(measured)]
    published = _published(quotient)
    said = _MISSING if published is None else _MEANING[judge(Interval(published, published, published))][0]
    return Comparison(
        statement=quotient.statement,
        over=tuple(_factor(time, picked) for time in quotient.over),
        under=tuple(_factor(time, picked) for time in quotient.under),
        measured=measured,
        verdict=verdict,
        remark=remark,
        published=published,
        published_verdict=said,
    )


_MISSING: Verdict = "not measured"
_MEANING: dict[str, tuple[Verdict, str]] = {
    "slower": ("holds", ""),  # what stands above takes longer: the claim says so
    "faster": ("does not hold", "the other way round"),
    "no difference seen": ("does not hold", "no difference seen"),
}


def _quotient(quotient: Quotient, picked: Picked) -> Interval:
    over = [picked[time][1] for time in quotient.over]
    under = [picked[time][1] for time in quotient.under]
    draws = independent(*(one.draws for one in (*over, *under) if one.draws is not None))
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
        row=who(one.row) if one else None,
        wall_s=one.wall if one else None,
    )


def _describe(time: Time) -> str:
    return f"{time.seed_label}, {time.phase}, {time.device}"
