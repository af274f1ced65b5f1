"""Everything that is said about one or several runs, from their folders' contents alone."""

from collections.abc import Sequence

import msgspec

from rnnbench.analysis.best import Best, find_best
from rnnbench.analysis.break_even import BreakEven, find_break_evens
from rnnbench.analysis.claims import Claim, judge_claims
from rnnbench.analysis.gap import Gap, find_gaps
from rnnbench.analysis.limit import LeastTime, Peak, find_peaks, least_time
from rnnbench.analysis.names import Group
from rnnbench.analysis.rows import Measured, Row, measure_rows
from rnnbench.analysis.summary import Statement, summarise
from rnnbench.analysis.sure import surely
from rnnbench.store.folder import Contents


class GroupAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """One machine, workload, phase, device and precision."""

    group: Group
    summary: tuple[Statement, ...]
    best: Best | None
    gaps: tuple[Gap, ...]  # one per framework and environment with the fine-grained program
    break_evens: tuple[BreakEven, ...]
    least: LeastTime | None  # None: the machine's rates were not measured


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """Of all runs given. Intervals are `[low, estimate, high]` in JSON."""

    rows: tuple[tuple[Row, ...], ...]  # of each run, as `make_rows` gives them
    peaks: tuple[Peak, ...]
    groups: tuple[GroupAnalysis, ...]  # in the order of runs and their cases
    claims: tuple[Claim, ...]


def analyse(runs: Sequence[Contents]) -> Analysis:
    measured = [surely(measure_rows(contents), contents.run.method.noise_threshold) for contents in runs]
    groups: list[GroupAnalysis] = []
    peaks: list[Peak] = []
    for number, (contents, rows) in enumerate(zip(runs, measured, strict=True)):
        found = find_peaks(contents.records, number)
        peaks += found.values()
        groups += [_analyse_group(contents, group, members, found) for group, members in _grouped(number, rows)]
    return Analysis(
        rows=tuple(tuple(one.row for one in rows) for rows in measured),
        peaks=tuple(peaks),
        groups=tuple(groups),
        claims=judge_claims(runs, measured),
    )


def _grouped(run: int, rows: Sequence[Measured]) -> list[tuple[Group, list[Measured]]]:
    groups: dict[Group, list[Measured]] = {}
    for one in rows:
        groups.setdefault(Group(run, *one.row.group), []).append(one)
    return list(groups.items())


def _analyse_group(
    contents: Contents, group: Group, rows: Sequence[Measured], peaks: dict[tuple[str, str], Peak]
) -> GroupAnalysis:
    workload, peak = contents.run.workloads[group.workload], peaks.get((group.device, group.precision))
    best, gaps, break_evens = find_best(rows), find_gaps(rows), find_break_evens(rows)
    return GroupAnalysis(
        group=group,
        summary=summarise([one.row for one in rows], best, gaps, break_evens),
        best=best,
        gaps=gaps,
        break_evens=break_evens,
        least=least_time(workload, group.phase, group.precision, peak) if peak else None,
    )
