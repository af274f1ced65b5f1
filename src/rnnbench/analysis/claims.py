"""The four quick conclusions of seed 000 as tests over what was measured, each beside the published figures."""

from typing import Literal

import msgspec

from rnnbench.analysis.names import Group, Who
from rnnbench.stats.bootstrap import Interval

ClaimVerdict = Literal["holds", "does not hold", "not measured"]


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """One time that goes into a comparison: what the seed calls it, and where it was found."""

    label: str  # as in the seed: `TF Graph (fine-grained operators)`
    phase: str
    device: str
    published_s: float | None = None
    group: Group | None = None  # None: not measured, or not verified
    row: Who | None = None
    wall_s: Interval | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A quotient of times that the claim says is greater than 1: the product of `over` by that of `under`."""

    statement: str  # `TF Eager on the GPU takes longer than on the CPU`
    over: tuple[Factor, ...]
    under: tuple[Factor, ...]
    published: float | None
    published_verdict: ClaimVerdict
    measured: Interval | None
    verdict: ClaimVerdict
    remark: str = ""  # `no difference seen`, `the other way round`, or what is missing


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One testable part of a claim: it holds when all of its comparisons hold, or where it says so any of them."""

    statement: str
    rule: Literal["all", "any"]
    comparisons: tuple[Comparison, ...]
    verdict: ClaimVerdict
    published_verdict: ClaimVerdict


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One quick conclusion, in the seed's own words."""

    number: int
    text: str
    parts: tuple[Part, ...]
    verdict: ClaimVerdict  # holds only where all parts hold
    published_verdict: ClaimVerdict  # the same test on the seed's own tables, without intervals
