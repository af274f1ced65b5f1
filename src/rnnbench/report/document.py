"""The content of a report: the runs, their analysis, and the panels of rows. Writers only lay it out."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from rnnbench.analysis.advice import Advice, advise
from rnnbench.analysis.case_results import find_case_results
from rnnbench.analysis.flexibility import (
    Entries,
    Flexibility,
    Price,
    advise_flexibility,
    entries_of,
    find_flexibility,
    find_prices,
)
from rnnbench.analysis.gap import Best, BreakEven, Gap, find_best, find_break_evens, find_gaps
from rnnbench.analysis.limit import LeastTime, Peak, Peaks, find_peaks, least_time
from rnnbench.analysis.row import Group, MeasuredRow, Row, RowId, row_id, short_names
from rnnbench.analysis.rows import measure_rows
from rnnbench.analysis.summary import Statement, summarise
from rnnbench.domain.result import Launch
from rnnbench.domain.run import Run
from rnnbench.published.claims import Claim, judge_claims
from rnnbench.store import Contents, read_folder


class GroupAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one group of rows."""

    group: Group
    advice: tuple[Advice, ...]  # what to do
    summary: tuple[Statement, ...]
    best: Best | None
    gaps: tuple[Gap, ...]  # one per framework and environment with the fine-grained program
    break_evens: tuple[BreakEven, ...]
    least: LeastTime | None  # None: the machine's rates were not measured
    flexibility: Flexibility | None = None  # None: abilities are known of no two rows


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all runs. Intervals are `[low, estimate, high]` in JSON."""

    rows: tuple[tuple[Row, ...], ...]  # of each run, as returned by `make_rows`
    peaks: tuple[Peak, ...]
    groups: tuple[GroupAnalysis, ...]  # in the order of runs and their cases
    claims: tuple[Claim, ...]
    prices: tuple[Price, ...] = ()  # of abilities


def analyse(runs: Sequence[Contents]) -> Analysis:
    measured = [measure_rows(contents) for contents in runs]
    groups: list[GroupAnalysis] = []
    peaks: list[Peak] = []
    prices: list[Price] = []
    for number, (contents, rows) in enumerate(zip(runs, measured, strict=True)):
        run_peaks, entries = find_peaks(contents.records, number), entries_of(contents)
        peaks += run_peaks.values()
        grouped = _grouped(number, rows)
        groups += [_analyse_group(contents, group, members, run_peaks, entries) for group, members in grouped]
        prices += find_prices(contents.run, grouped)
    return Analysis(
        rows=tuple(tuple(each.row for each in rows) for rows in measured),
        peaks=tuple(peaks),
        groups=tuple(groups),
        claims=judge_claims(runs, measured),
        prices=tuple(prices),
    )


def _grouped(run: int, rows: Sequence[MeasuredRow]) -> list[tuple[Group, list[MeasuredRow]]]:
    groups: dict[Group, list[MeasuredRow]] = {}
    for measured in rows:
        groups.setdefault(Group(run, *measured.row.group), []).append(measured)
    return list(groups.items())


def _analyse_group(
    contents: Contents, group: Group, rows: Sequence[MeasuredRow], peaks: Peaks, entries: Entries
) -> GroupAnalysis:
    node = find_node(measured.row for measured in rows)
    workload, peak = contents.run.workloads[group.workload], peaks.get((node, group.device, group.precision))
    best, gaps, break_evens = find_best(rows), find_gaps(rows), find_break_evens(rows)
    flexibility = find_flexibility(rows, entries, contents.run)
    first, *others = advise(rows, best, gaps, break_evens)
    return GroupAnalysis(
        group=group,
        advice=(first, *advise_flexibility(flexibility, rows), *others),
        summary=summarise([measured.row for measured in rows], best, gaps, break_evens),
        best=best,
        gaps=gaps,
        break_evens=break_evens,
        least=least_time(workload, group.phase, group.precision, peak) if peak else None,
        flexibility=flexibility,
    )


#: In the order in which tables show them, below the ranked rows; those verified are above the machine's limit.
UNRANKED_STATUSES = ("verified", "wrong", "failed", "timeout", "unverified", "unsupported")


def is_ranked(row: Row) -> bool:
    """Measured, not known to be wrong, and not faster than the machine can be."""
    return row.wall_s is not None and row.status in ("verified", "unverified") and not row.above_limit


def ranked_rows(rows: Iterable[Row]) -> list[Row]:
    """Fastest first."""
    return sorted((row for row in rows if is_ranked(row)), key=lambda row: row.wall_s or 0.0)


def unranked_rows(rows: Iterable[Row]) -> list[Row]:
    """The other rows by status. A wrong row keeps its time but is not ranked."""
    return sorted((row for row in rows if not is_ranked(row)), key=lambda row: UNRANKED_STATUSES.index(row.status))


class Panel:
    """One group with its rows and its analysis."""

    def __init__(self, analysis: GroupAnalysis, rows: Sequence[Row]) -> None:
        self.analysis = analysis
        self.group: Group = analysis.group
        self.rows = rows
        self.title = str(analysis.group)

    @cached_property
    def ranked(self) -> list[Row]:
        return ranked_rows(self.rows)

    @cached_property
    def unranked(self) -> list[Row]:
        return unranked_rows(self.rows)

    @cached_property
    def verified(self) -> list[Row]:
        return [row for row in self.ranked if row.status == "verified"]

    @cached_property
    def _names(self) -> dict[RowId, str]:
        return short_names(self.rows)

    def name(self, row: Row) -> str:
        """The system's name, with the environment where the system has rows in several."""
        return self._names[row_id(row)]


def make_panels(analysis: Analysis) -> list[Panel]:
    """One for each group, in the order of the runs and their plans, but training before the forward pass alone."""
    members: dict[Group, list[Row]] = {}
    for run, rows in enumerate(analysis.rows):
        for row in rows:
            members.setdefault(Group(run, *row.group), []).append(row)
    panels = [Panel(group, members[group.group]) for group in analysis.groups]
    places: dict[Group, int] = {}  # of the first group that differs in the phase only
    for panel in panels:
        places.setdefault(_without_phase(panel.group), len(places))
    return sorted(panels, key=lambda panel: (places[_without_phase(panel.group)], panel.group.phase != "train"))


def _without_phase(group: Group) -> Group:
    return msgspec.structs.replace(group, phase="train")


class Document:
    """One or several runs, read and analysed once."""

    def __init__(self, names: Sequence[str], runs: Sequence[Contents]) -> None:
        self.names = names  # of the runs, all different
        self.runs = runs
        self.analysis = analyse(runs)
        self.panels = make_panels(self.analysis)

    def launches(self, group: Group, row: Row) -> tuple[Launch, ...]:
        """The launches from which a row of a group was computed."""
        return self._launches[group, row.system, row.environment]

    @cached_property
    def _launches(self) -> dict[tuple[Group, str, str], tuple[Launch, ...]]:
        return {
            (Group(number, *result.case.group), result.case.system, result.case.environment): result.launches
            for number, run in enumerate(self.runs)
            for result in find_case_results(run)
        }

    @property
    def has_several_runs(self) -> bool:
        return len(self.runs) > 1


def read_document(folders: Sequence[Path]) -> Document:
    return Document(run_names(folders), [read_folder(folder) for folder in folders])


def run_names(folders: Sequence[Path]) -> list[str]:
    """The folders' names, with a number where two have the same name."""
    names: list[str] = []
    for folder in folders:
        name = plain = folder.resolve().name
        while name in names:
            name = f"{plain} ({sum(other.startswith(plain) for other in names) + 1})"
        names.append(name)
    return names


def machine_name(run: Run, device: str, node: str = "") -> str:
    """The GPU or processor on which the rows of a device ran, and the node that it is in."""
    machine = run.machine_of(node)
    place = f"{node}: " if node else ""
    if device == "cuda" and machine.gpus:
        return place + machine.gpus[0].name
    return f"{place}{machine.cpu}, {machine.cores} core{'' if machine.cores == 1 else 's'}"


def find_node(rows: Iterable[Row]) -> str:
    """The node on which these rows of one group were timed; "" if there is none, or nothing was timed yet."""
    return next((row.node for row in rows if row.node), "")
