"""Two runs side by side: for each case that both have, how many times as long it takes in B as in A.

Cases are matched first, then everything else that differs between the runs is listed (`differences`), and a ratio with
its interval and verdict is given only where nothing that matters differs.
"""

import math
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import msgspec

from rnnbench.analysis.case_results import CaseResult, find_case_results
from rnnbench.analysis.differences import Difference, DifferenceKind, Differences
from rnnbench.analysis.levels import Spreads, find_level, find_spreads, log_times
from rnnbench.analysis.nodes import unlike_nodes
from rnnbench.analysis.steadiness import is_steady
from rnnbench.domain.case import Case, LeftOut
from rnnbench.domain.result import Interval, Launch, Status
from rnnbench.errors import UserError
from rnnbench.stats.intervals import difference_verdict, interval_of, ratio
from rnnbench.stats.launch_means import Level, mean_over_cases
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
    uncertain_a: bool = False  # the interval of the time in A is wider than ±20 %
    uncertain_b: bool = False
    ratio_uncertain: bool = False
    launches_a: int = 0
    launches_b: int = 0
    noisy: bool = False  # the machine was busy during some launch that is used
    steady: bool = True  # in both runs
    broken: bool = False  # it worked in A, but fails or is wrong in B

    @property
    def group(self) -> tuple[str, str, str, str]:
        return (self.workload, self.phase, self.device, self.precision)


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """The geometric mean of ratios; without an interval where one of the runs has a single round."""

    ratio: float
    low: float | None
    high: float | None
    uncertain: bool = False


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
    launches: tuple[Launch, ...] = ()
    level: Level | None = None  # of its time
    node: str = ""  # where it was timed

    @property
    def wall(self) -> Interval | None:
        return interval_of(self.level) if self.level else None


def compare_runs(
    a: Contents,
    b: Contents,
    *,
    across: Collection[DifferenceKind] = (),
    threshold: float = THRESHOLD,
    spreads: tuple[Spreads, Spreads] | None = None,
) -> RunComparison:
    """Every case that is in both runs. `across` names the kinds of differences to ignore.

    `spreads` are those of the whole runs, where `a` and `b` are parts of them: a case has one interval everywhere.
    """
    spreads_a, spreads_b = spreads or (find_spreads(a), find_spreads(b))
    pairs = _match_cases(a, b)
    differences = Differences(a.run, b.run)
    all_differences: dict[Difference, None] = {}
    sides: list[tuple[ComparedCase, ComparedCase]] = []
    stopping: list[tuple[DifferenceKind, ...]] = []
    for first, second in pairs.both:
        between = differences.between(first.case, second.case, (_node(first), _node(second)))
        all_differences |= dict.fromkeys(between)
        sides.append((_compared_case(first, "A", spreads_a), _compared_case(second, "B", spreads_b)))
        stopping.append(tuple(dict.fromkeys(each.kind for each in between if each.kind not in across)))
    reasons = [
        first.unusable or second.unusable or (f"{' and '.join(kinds)} differ" if kinds else "")
        for (first, second), kinds in zip(sides, stopping, strict=True)
    ]
    comparable = [pair for pair, reason in zip(sides, reasons, strict=True) if not reason]
    refused = [
        f"no geometric mean: {name} was measured on unlike machines ({unlike})"
        for name, contents, side in (("A", a, 0), ("B", b, 1))
        if (unlike := unlike_nodes(contents.run, [(pair[side].node, pair[side].case.device) for pair in comparable]))
    ]
    return RunComparison(
        threshold=threshold,
        across=tuple(across),
        cases=tuple(
            _case_comparison(*pair, reason, kinds, threshold)
            for pair, reason, kinds in zip(sides, reasons, stopping, strict=True)
        ),
        geometric_mean=None if refused else _geometric_mean(comparable),
        crossed=tuple(str(each) for each in all_differences if each.kind in across),
        stopping=tuple(str(each) for each in all_differences if each.kind not in across),
        notes=(*differences.notes(), *refused),
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


def _compared_case(known: KnownCase, run: str, spreads: Spreads) -> ComparedCase:
    if isinstance(known, LeftOut):
        return ComparedCase(known.case, "unsupported", f"unsupported in {run}: {known.reason}")
    status, reason = known.status_and_reason
    if not known.measured:
        why = f"{status} in {run}: {reason}" if known.launches else f"{reason} in {run}"
        return ComparedCase(known.case, status, why)
    return ComparedCase(
        case=known.case,
        status=status,
        unusable=f"wrong in {run}: {reason}" if status == "wrong" else "",
        launches=known.launches,
        level=find_level(known.launches, spreads),
        node=known.node,
    )


def _node(known: KnownCase) -> str:
    return known.node if isinstance(known, CaseResult) else ""


def _geometric_mean(comparable: Sequence[tuple[ComparedCase, ComparedCase]]) -> Mean | None:
    """Of all ratios; its interval comes from how the rounds of each run differ as a whole."""
    if not comparable:
        return None
    logs = [second.level.log - first.level.log for first, second in comparable if first.level and second.level]
    runs = [_mean_of_run([pair[side] for pair in comparable]) for side in (0, 1)]
    interval = ratio(runs[1], runs[0], alike=True) if runs[0] and runs[1] else None
    return Mean(
        ratio=math.exp(sum(logs) / len(logs)),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        uncertain=interval.uncertain if interval else False,
    )


def _mean_of_run(cases: Sequence[ComparedCase]) -> Level | None:
    rounds = [
        dict(zip((launch.round for launch in case.launches), log_times(case.launches), strict=True)) for case in cases
    ]
    return mean_over_cases([case.level for case in cases if case.level], rounds)


def _case_comparison(
    a: ComparedCase, b: ComparedCase, reason: str, differing: tuple[DifferenceKind, ...], threshold: float
) -> CaseComparison:
    case = a.case
    between = None if reason or a.level is None or b.level is None else ratio(b.level, a.level, alike=True)
    launches = (*a.launches, *b.launches)
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
        verdict="not comparable" if between is None else difference_verdict(between, threshold),
        reason=reason,
        differing=differing,
        a_s=a.wall.estimate if a.wall else None,
        b_s=b.wall.estimate if b.wall else None,
        ratio=between.estimate if between else None,
        ratio_low=between.low if between else None,
        ratio_high=between.high if between else None,
        uncertain_a=bool(a.wall and a.wall.uncertain),
        uncertain_b=bool(b.wall and b.wall.uncertain),
        ratio_uncertain=bool(between and between.uncertain),
        launches_a=len(a.launches),
        launches_b=len(b.launches),
        noisy=any(launch.noisy for launch in launches),
        steady=all(is_steady(side.launches) for side in (a, b)),
        broken=not a.unusable and b.status in ("wrong", "failed", "timeout"),
    )
