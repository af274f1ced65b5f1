"""Two runs side by side: for each case both have, how many times as long it takes in B as in A."""

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from rnnbench.analysis.case_results import CaseResult, find_case_results
from rnnbench.analysis.differences import Difference, DifferenceKind, Differences
from rnnbench.domain.case import Case, LeftOut
from rnnbench.domain.result import Interval, Launch, Status
from rnnbench.errors import UserError
from rnnbench.stats.intervals import difference_verdict
from rnnbench.stats.launch_means import (
    LaunchMean,
    launch_mean,
    mean_over_cases,
    ratio_intervals,
    single_launch_interval,
)
from rnnbench.store import Contents

KnownCase = CaseResult | LeftOut
_Key = tuple[str, ...]


class Pairs(msgspec.Struct, frozen=True):
    """Pairs in the order of run A, and the cases that have none."""

    both: list[tuple[KnownCase, KnownCase]]
    only_a: list[Case]
    only_b: list[Case]


def choose_environment(contents: Contents, environment: str) -> Contents:
    """The run as if it had been made in that environment alone: how two versions of one run are compared."""
    known = {case.environment for case in contents.run.cases}
    if environment not in known:
        raise UserError(f"the run has no environment '{environment}'", f"it has: {', '.join(sorted(known))}")
    run = contents.run
    kept = msgspec.structs.replace(
        run,
        cases=tuple(case for case in run.cases if case.environment == environment),
        left_out=tuple(left for left in run.left_out if left.case.environment == environment),
    )
    return msgspec.structs.replace(contents, run=kept)


def match_cases(a: Contents, b: Contents) -> Pairs:
    """By environment where its name is the same; else one with one, as when a framework was updated."""
    ours, theirs = _entries(a), _entries(b)
    both: list[tuple[KnownCase, KnownCase]] = []
    only_a: list[Case] = []
    for key, mine in ours.items():
        other = theirs.get(key, {})
        pairs = [(name, name) for name in mine if name in other]
        left, right = [name for name in mine if name not in other], [name for name in other if name not in mine]
        if len(left) == len(right) == 1:
            pairs.append((left[0], right[0]))
            left = []
        for first, second in pairs:
            one, another = mine[first], other.pop(second)
            if isinstance(one, CaseResult) or isinstance(another, CaseResult):
                both.append((one, another))
        only_a += [mine[name].case for name in left if isinstance(mine[name], CaseResult)]
    only_b = [entry.case for entries in theirs.values() for entry in entries.values() if isinstance(entry, CaseResult)]
    return Pairs(both, only_a, only_b)


def _entries(contents: Contents) -> dict[_Key, dict[str, KnownCase]]:
    found: dict[_Key, dict[str, KnownCase]] = {}
    for entry in _all(contents):
        case = entry.case
        found.setdefault((*case.group, case.system), {})[case.environment] = entry
    return found


def _all(contents: Contents) -> Iterator[KnownCase]:
    yield from find_case_results(contents)
    yield from contents.run.left_out


class ComparedCase(NamedTuple):
    """A case in one of the runs, as far as comparing needs it."""

    case: Case
    status: Status
    unusable: str  # why it has no time that could be compared; empty when it has
    launches: tuple[Launch, ...]
    times: list[tuple[int, float]]  # batches and seconds of each launch
    noisy: bool

    @property
    def wall_s(self) -> float | None:
        if not self.times:
            return None
        return sum(seconds for _, seconds in self.times) / sum(batches for batches, _ in self.times)

    def samples(self) -> list[float]:
        """Seconds a batch in every block of the first launch."""
        return [sample.seconds / sample.batches for sample in self.launches[0].samples]


def make_compared_case(entry: KnownCase, name: str) -> ComparedCase:
    if isinstance(entry, LeftOut):
        return ComparedCase(entry.case, "unsupported", f"unsupported in {name}: {entry.reason}", (), [], False)
    status, reason = entry.status_and_reason
    if not entry.measured:
        why = f"{status} in {name}: {reason}" if entry.launches else f"{reason} in {name}"
        return ComparedCase(entry.case, status, why, (), [], False)
    return ComparedCase(
        case=entry.case,
        status=status,
        unusable=f"wrong in {name}: {reason}" if status == "wrong" else "",
        launches=entry.launches,
        times=[(launch.batches, launch.seconds) for launch in entry.launches],
        noisy=any(launch.noisy for launch in entry.launches),
    )


#: Two runs of one program differ by about as much for reasons that no launch within a run can show.
THRESHOLD = 0.01
ComparisonVerdict = Literal["faster", "slower", "no difference seen", "not comparable"]
COMPARISON_VERDICTS: tuple[ComparisonVerdict, ...] = ("slower", "faster", "no difference seen", "not comparable")


class CaseComparison(msgspec.Struct, frozen=True, kw_only=True):
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
    verdict: ComparisonVerdict
    reason: str = ""  # why it is not comparable
    differing: tuple[DifferenceKind, ...] = ()  # what stops a verdict
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


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """All cases, and what they say together."""

    threshold: float
    across: tuple[DifferenceKind, ...]
    cases: tuple[CaseComparison, ...]
    geometric_mean: Mean | None  # of all comparable cases
    crossed: tuple[str, ...]  # differences gone across because that was asked for
    stopping: tuple[str, ...]  # differences that make cases not comparable
    notes: tuple[str, ...]
    only_in_a: tuple[Case, ...]
    only_in_b: tuple[Case, ...]

    def count(self, verdict: ComparisonVerdict) -> int:
        return sum(case.verdict == verdict for case in self.cases)


def compare_runs(
    a: Contents, b: Contents, *, across: Collection[DifferenceKind] = (), threshold: float = THRESHOLD
) -> RunComparison:
    """Verdicts for every case that is in both runs, B beside A."""
    pairs = match_cases(a, b)
    differences = Differences(a.run, b.run)
    seen: dict[Difference, None] = {}
    sides: list[tuple[ComparedCase, ComparedCase]] = []
    stops: list[tuple[DifferenceKind, ...]] = []
    for first, second in pairs.both:
        found = differences.between(first.case, second.case)
        seen |= dict.fromkeys(found)
        sides.append((make_compared_case(first, "A"), make_compared_case(second, "B")))
        stops.append(tuple(dict.fromkeys(one.kind for one in found if one.kind not in across)))
    reasons = [
        first.unusable or second.unusable or (f"{' and '.join(kinds)} differ" if kinds else "")
        for (first, second), kinds in zip(sides, stops, strict=True)
    ]
    able = [pair for pair, reason in zip(sides, reasons, strict=True) if not reason]
    levels = [(launch_mean(first.times), launch_mean(second.times)) for first, second in able]
    intervals = iter(_intervals(able, levels, (a.run.method.noise_threshold, b.run.method.noise_threshold)))
    return RunComparison(
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


def failures(comparison: RunComparison, above: float) -> list[str]:
    """Why a regression test should fail: what is surely slower by more than that, what broke, or nothing compared."""
    slower = [
        f"{_name(case)}: slower by more than {100 * above:g} % [{case.ratio_low:.3f}×, {case.ratio_high:.3f}×]"
        for case in comparison.cases
        if case.verdict == "slower" and case.ratio_low is not None and case.ratio_low > 1 + above
    ]
    broken = [f"{_name(case)}: {case.reason}" for case in comparison.cases if case.broken]
    nothing = comparison.count("not comparable") == len(comparison.cases)
    return slower + broken + (["nothing could be compared"] if nothing else [])


def _name(case: CaseComparison) -> str:
    return f"{case.system} {case.workload} {case.phase} {case.device} {case.precision}"


def _intervals(
    able: Sequence[tuple[ComparedCase, ComparedCase]],
    levels: Sequence[tuple[LaunchMean, LaunchMean]],
    allowances: tuple[float, float],
) -> Iterator[Interval]:
    """Of every ratio, by its launches, or where each side has but one by the samples of those."""
    for pair, (base, other), found in zip(able, levels, ratio_intervals(levels), strict=True):
        yield found or single_launch_interval(
            other.log_wall - base.log_wall, pair[0].samples(), pair[1].samples(), allowances
        )


def _mean(
    able: Sequence[tuple[ComparedCase, ComparedCase]], levels: Sequence[tuple[LaunchMean, LaunchMean]]
) -> Mean | None:
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
        means.append(mean_over_cases([pair[index] for pair in levels], by_round))
    (mean,) = ratio_intervals([(means[0], means[1])])
    return Mean(
        ratio=math.exp(means[1].log_wall - means[0].log_wall),
        low=mean.low if mean else None,
        high=mean.high if mean else None,
    )


def _compared(
    a: ComparedCase,
    b: ComparedCase,
    reason: str,
    differing: tuple[DifferenceKind, ...],
    ratio: Interval | None,
    threshold: float,
) -> CaseComparison:
    case = a.case
    return CaseComparison(
        workload=case.workload,
        system=case.system,
        phase=case.phase,
        device=case.device,
        precision=case.precision,
        environment_a=case.environment,
        environment_b=b.case.environment,
        status_a=a.status,
        status_b=b.status,
        verdict="not comparable" if ratio is None else difference_verdict(ratio, threshold),
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
