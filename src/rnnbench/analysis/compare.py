"""Two runs side by side: for each case both have, how many times as long it takes in B as in A."""

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

import msgspec

from rnnbench.analysis.differences import Difference, Differences, Kind
from rnnbench.analysis.pairs import match
from rnnbench.analysis.side import Side, make_side
from rnnbench.domain.case import Case
from rnnbench.domain.result import Status
from rnnbench.stats.bootstrap import Interval
from rnnbench.stats.difference import judge
from rnnbench.stats.levels import Level, level, of_single_launches, ratios, together
from rnnbench.store.folder import Contents

#: Two runs of one program differ by about as much for reasons that no launch within a run can show.
THRESHOLD = 0.01

Verdict = Literal["faster", "slower", "no difference seen", "not comparable"]
VERDICTS: tuple[Verdict, ...] = ("slower", "faster", "no difference seen", "not comparable")


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One case in both runs; times in seconds, the ratio is B over A. None: there is none."""

    workload: str
    system: str
    phase: str
    device: str
    precision: str
    environment_a: str
    environment_b: str
    status_a: Status
    status_b: Status
    verdict: Verdict
    reason: str = ""  # why it is not comparable
    differing: tuple[Kind, ...] = ()  # what stops a verdict
    a_s: float | None = None
    b_s: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    launches_a: int = 0
    launches_b: int = 0
    noisy: bool = False  # the machine was busy during some launch that stands
    broken: bool = False  # it worked in A, but fails or is wrong in B

    @property
    def group(self) -> tuple[str, str, str, str]:
        return (self.workload, self.phase, self.device, self.precision)


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """The geometric mean of ratios; without an interval where no case has a second launch."""

    ratio: float
    low: float | None
    high: float | None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All cases, and what they say together."""

    threshold: float
    across: tuple[Kind, ...]
    cases: tuple[Compared, ...]
    geometric_mean: Mean | None  # of all comparable cases
    crossed: tuple[str, ...]  # differences gone across because that was asked for
    stopping: tuple[str, ...]  # differences that make cases not comparable
    notes: tuple[str, ...]
    only_in_a: tuple[Case, ...]
    only_in_b: tuple[Case, ...]

    def count(self, verdict: Verdict) -> int:
        return sum(case.verdict == verdict for case in self.cases)


def compare_runs(
    a: Contents, b: Contents, *, across: Collection[Kind] = (), threshold: float = THRESHOLD
) -> Comparison:
    """Verdicts for every case that is in both runs, B beside A."""
    pairs = match(a, b)
    differences = Differences(a.run, b.run)
    seen: dict[Difference, None] = {}
    sides: list[tuple[Side, Side]] = []
    stops: list[tuple[Kind, ...]] = []
    for first, second in pairs.both:
        found = differences.between(first.case, second.case)
        seen |= dict.fromkeys(found)
        sides.append((make_side(first, "A"), make_side(second, "B")))
        stops.append(tuple(dict.fromkeys(one.kind for one in found if one.kind not in across)))
    reasons = [
        first.unusable or second.unusable or (f"{' and '.join(kinds)} differ" if kinds else "")
        for (first, second), kinds in zip(sides, stops, strict=True)
    ]
    able = [pair for pair, reason in zip(sides, reasons, strict=True) if not reason]
    levels = [(level(first.times), level(second.times)) for first, second in able]
    intervals = iter(_intervals(able, levels, (a.run.method.noise_threshold, b.run.method.noise_threshold)))
    return Comparison(
        threshold=threshold,
        across=tuple(across),
        cases=tuple(
            _compared(*pair, reason, kinds, None if reason else next(intervals), threshold)
            for pair, reason, kinds in zip(sides, reasons, stops, strict=True)
        ),
        geometric_mean=_mean(able, levels),
        crossed=tuple(str(one) for one in seen if one.kind in across),
        stopping=tuple(str(one) for one in seen if one.kind not in across),
        notes=tuple(differences.notes()),
        only_in_a=tuple(pairs.only_a),
        only_in_b=tuple(pairs.only_b),
    )


def failures(comparison: Comparison, above: float) -> list[str]:
    """Why a regression test should fail: what is surely slower by more than that, what broke, or nothing compared."""
    slower = [
        f"{_name(case)}: slower by more than {100 * above:g} % [{case.ratio_low:.3f}×, {case.ratio_high:.3f}×]"
        for case in comparison.cases
        if case.verdict == "slower" and case.ratio_low is not None and case.ratio_low > 1 + above
    ]
    broken = [f"{_name(case)}: {case.reason}" for case in comparison.cases if case.broken]
    nothing = comparison.count("not comparable") == len(comparison.cases)
    return slower + broken + (["nothing could be compared"] if nothing else [])


def _name(case: Compared) -> str:
    return f"{case.system} {case.workload} {case.phase} {case.device} {case.precision}"


def _intervals(
    able: Sequence[tuple[Side, Side]], levels: Sequence[tuple[Level, Level]], allowances: tuple[float, float]
) -> Iterator[Interval]:
    """Of every ratio, by its launches, or where each side has but one by the samples of those."""
    for pair, (base, other), found in zip(able, levels, ratios(levels), strict=True):
        yield found or of_single_launches(
            other.log_wall - base.log_wall, pair[0].samples(), pair[1].samples(), allowances
        )


def _mean(able: Sequence[tuple[Side, Side]], levels: Sequence[tuple[Level, Level]]) -> Mean | None:
    """The geometric mean of the ratios; its interval from how the rounds of each run differ as a whole."""
    if not able:
        return None
    means = []
    for index in (0, 1):
        by_round = [
            {
                launch.round: math.log(seconds / batches)
                for launch, (batches, seconds) in zip(pair[index].launches, pair[index].times, strict=True)
            }
            for pair in able
        ]
        means.append(together([pair[index] for pair in levels], by_round))
    (mean,) = ratios([(means[0], means[1])])
    return Mean(
        ratio=math.exp(means[1].log_wall - means[0].log_wall),
        low=mean.low if mean else None,
        high=mean.high if mean else None,
    )


def _compared(
    a: Side, b: Side, reason: str, differing: tuple[Kind, ...], ratio: Interval | None, threshold: float
) -> Compared:
    case = a.case
    return Compared(
        workload=case.workload,
        system=case.system,
        phase=case.phase,
        device=case.device,
        precision=case.precision,
        environment_a=case.environment,
        environment_b=b.case.environment,
        status_a=a.status,
        status_b=b.status,
        verdict="not comparable" if ratio is None else judge(ratio, threshold),
        reason=reason,
        differing=differing,
        a_s=a.wall_s,
        b_s=b.wall_s,
        ratio=None if reason or a.wall_s is None or b.wall_s is None else b.wall_s / a.wall_s,
        ratio_low=ratio.low if ratio else None,
        ratio_high=ratio.high if ratio else None,
        launches_a=len(a.times),
        launches_b=len(b.times),
        noisy=a.noisy or b.noisy,
        broken=not a.unusable and b.status in ("wrong", "failed", "timeout"),
    )
