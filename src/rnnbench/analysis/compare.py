"""Two runs side by side: for each case that both have, how many times as long it takes in B as in A.

Cases are matched first, then everything else that differs between the runs is listed (`differences`), and a ratio with
its interval and verdict is given only where nothing that matters differs.
"""

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
    differing: tuple[DifferenceKind, ...] = ()  # the kinds of differences that make it not comparable
    a_s: float | None = None
    b_s: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    launches_a: int = 0
    launches_b: int = 0
    noisy: bool = False  # the machine was busy during some launch that is used
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
    """All cases, and what they show together."""

    threshold: float
    across: tuple[DifferenceKind, ...]
    cases: tuple[CaseComparison, ...]
    geometric_mean: Mean | None  # of all comparable cases
    crossed: tuple[str, ...]  # differences that were ignored on request
    stopping: tuple[str, ...]  # differences that make cases not comparable
    notes: tuple[str, ...]
    only_in_a: tuple[Case, ...]
    only_in_b: tuple[Case, ...]

    def count(self, verdict: ComparisonVerdict) -> int:
        return sum(case.verdict == verdict for case in self.cases)


KnownCase = CaseResult | LeftOut


class Pairs(msgspec.Struct, frozen=True):
    """Pairs in the order of run A, and the cases that have none."""

    both: list[tuple[KnownCase, KnownCase]]
    only_a: list[Case]
    only_b: list[Case]


class ComparedCase(NamedTuple):
    """A case in one of the runs, as far as a comparison needs it."""

    case: Case
    status: Status
    unusable: str  # why its time cannot be compared; empty when it can
    launches: tuple[Launch, ...]
    times: list[tuple[int, float]]  # batches and seconds of each launch
    noisy: bool

    @property
    def wall_s(self) -> float | None:
        if not self.times:
            return None
        return sum(seconds for _, seconds in self.times) / sum(batches for batches, _ in self.times)

    def samples(self) -> list[float]:
        """Seconds per batch in every block of the first launch."""
        return [sample.seconds / sample.batches for sample in self.launches[0].samples]


def compare_runs(
    a: Contents, b: Contents, *, across: Collection[DifferenceKind] = (), threshold: float = THRESHOLD
) -> RunComparison:
    """Every case that is in both runs. `across` names the kinds of differences to ignore."""
    pairs = _match_cases(a, b)
    differences = Differences(a.run, b.run)
    all_differences: dict[Difference, None] = {}
    sides: list[tuple[ComparedCase, ComparedCase]] = []
    stopping: list[tuple[DifferenceKind, ...]] = []
    for first, second in pairs.both:
        between = differences.between(first.case, second.case)
        all_differences |= dict.fromkeys(between)
        sides.append((_compared_case(first, "A"), _compared_case(second, "B")))
        stopping.append(tuple(dict.fromkeys(each.kind for each in between if each.kind not in across)))
    reasons = [
        first.unusable or second.unusable or (f"{' and '.join(kinds)} differ" if kinds else "")
        for (first, second), kinds in zip(sides, stopping, strict=True)
    ]
    comparable = [pair for pair, reason in zip(sides, reasons, strict=True) if not reason]
    means = [(launch_mean(first.times), launch_mean(second.times)) for first, second in comparable]
    intervals = iter(_intervals(comparable, means, (a.run.method.noise_threshold, b.run.method.noise_threshold)))
    return RunComparison(
        threshold=threshold,
        across=tuple(across),
        cases=tuple(
            _case_comparison(*pair, reason, kinds, None if reason else next(intervals), threshold)
            for pair, reason, kinds in zip(sides, reasons, stopping, strict=True)
        ),
        geometric_mean=_geometric_mean(comparable, means),
        crossed=tuple(str(each) for each in all_differences if each.kind in across),
        stopping=tuple(str(each) for each in all_differences if each.kind not in across),
        notes=tuple(differences.notes()),
        only_in_a=tuple(pairs.only_a),
        only_in_b=tuple(pairs.only_b),
    )


def failures(comparison: RunComparison, above: float) -> list[str]:
    """Why a regression test should fail: cases surely slower by more than `above`, broken cases, or none comparable."""
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


def choose_environment(contents: Contents, environment: str) -> Contents:
    """The run reduced to one environment, so that two versions within one run can be compared."""
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


def _match_cases(a: Contents, b: Contents) -> Pairs:
    """Environments of the same name are paired. If one is left over on each side, as after an update, so are those."""
    ours, theirs = _by_environment(a), _by_environment(b)
    both: list[tuple[KnownCase, KnownCase]] = []
    only_a: list[Case] = []
    for key, in_a in ours.items():
        in_b = theirs.get(key, {})
        names = [(name, name) for name in in_a if name in in_b]
        left, right = [name for name in in_a if name not in in_b], [name for name in in_b if name not in in_a]
        if len(left) == len(right) == 1:
            names.append((left[0], right[0]))
            left = []
        for name_a, name_b in names:
            first, second = in_a[name_a], in_b.pop(name_b)
            if isinstance(first, CaseResult) or isinstance(second, CaseResult):
                both.append((first, second))
        only_a += [in_a[name].case for name in left if isinstance(in_a[name], CaseResult)]
    only_b = [known.case for cases in theirs.values() for known in cases.values() if isinstance(known, CaseResult)]
    return Pairs(both, only_a, only_b)


def _by_environment(contents: Contents) -> dict[tuple[str, ...], dict[str, KnownCase]]:
    """(group, system) -> environment -> case, those that were left out included."""
    cases: dict[tuple[str, ...], dict[str, KnownCase]] = {}
    everything: list[KnownCase] = [*find_case_results(contents), *contents.run.left_out]
    for known in everything:
        cases.setdefault((*known.case.group, known.case.system), {})[known.case.environment] = known
    return cases


def _compared_case(known: KnownCase, run: str) -> ComparedCase:
    if isinstance(known, LeftOut):
        return ComparedCase(known.case, "unsupported", f"unsupported in {run}: {known.reason}", (), [], False)
    status, reason = known.status_and_reason
    if not known.measured:
        why = f"{status} in {run}: {reason}" if known.launches else f"{reason} in {run}"
        return ComparedCase(known.case, status, why, (), [], False)
    return ComparedCase(
        case=known.case,
        status=status,
        unusable=f"wrong in {run}: {reason}" if status == "wrong" else "",
        launches=known.launches,
        times=[(launch.batches, launch.seconds) for launch in known.launches],
        noisy=any(launch.noisy for launch in known.launches),
    )


def _intervals(
    comparable: Sequence[tuple[ComparedCase, ComparedCase]],
    means: Sequence[tuple[LaunchMean, LaunchMean]],
    allowances: tuple[float, float],
) -> Iterator[Interval]:
    """Of every ratio, from the launches, or from the samples where each side has a single launch."""
    for (first, second), (mean_a, mean_b), interval in zip(comparable, means, ratio_intervals(means), strict=True):
        yield interval or single_launch_interval(
            mean_b.log_wall - mean_a.log_wall, first.samples(), second.samples(), allowances
        )


def _geometric_mean(
    comparable: Sequence[tuple[ComparedCase, ComparedCase]], means: Sequence[tuple[LaunchMean, LaunchMean]]
) -> Mean | None:
    """Of all ratios; its interval comes from how the rounds of each run differ as a whole."""
    if not comparable:
        return None
    of_runs = []
    for side in (0, 1):
        by_round = [
            {
                launch.round: math.log(seconds / batches)
                for launch, (batches, seconds) in zip(pair[side].launches, pair[side].times, strict=True)
            }
            for pair in comparable
        ]
        of_runs.append(mean_over_cases([pair[side] for pair in means], by_round))
    (interval,) = ratio_intervals([(of_runs[0], of_runs[1])])
    return Mean(
        ratio=math.exp(of_runs[1].log_wall - of_runs[0].log_wall),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
    )


def _case_comparison(
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
