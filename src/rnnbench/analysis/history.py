"""One system over the versions of its framework: the time in each, and how many times that of the newest.

A historic system stands before the living one that its manifest names as its successor. Only verified rows have
a ratio: what an unproved program takes says nothing of a version. Rows of several runs are compared as `compare`
does it: what else differs stops the ratio unless it is to be gone across.
"""

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec
from packaging.version import Version

from rnnbench.analysis.compare import CaseComparison, ComparisonVerdict, choose_environment, compare_runs
from rnnbench.analysis.differences import DifferenceKind
from rnnbench.analysis.row import Row
from rnnbench.analysis.rows import make_rows
from rnnbench.domain.case import Case
from rnnbench.domain.result import Limit, Status
from rnnbench.domain.system import version_key
from rnnbench.errors import UserError
from rnnbench.published.rows import Published, published_versions
from rnnbench.store import Contents


class VersionRow(msgspec.Struct, frozen=True):
    """A row with the run it is from."""

    run: int
    row: Row
    version: str
    successor: str = ""


class VersionPairs:
    """Compares environments of runs, each pair of them once, whatever system asks."""

    def __init__(self, runs: Sequence[Contents], across: Collection[DifferenceKind]) -> None:
        self._runs = runs
        self._across: tuple[DifferenceKind, ...] = ("environment", *(kind for kind in across if kind != "environment"))
        self._known: dict[tuple[object, ...], dict[tuple[str, ...], CaseComparison]] = {}

    def between(self, newest: VersionRow, other: VersionRow) -> CaseComparison:
        """How many times as long the other takes."""
        successor, system = newest.row.system, other.row.system
        renamed = (system, successor) if system != successor else ()
        key = (newest.run, newest.row.environment, other.run, other.row.environment, renamed)
        if key not in self._known:
            base, versus = (
                choose_environment(self._runs[entry.run], entry.row.environment) for entry in (newest, other)
            )
            across = self._across
            if renamed:  # that another program stands in its place is what is looked at
                versus = _rename(versus, system, successor)
                across = (*across, *(() if "source" in across else ("source",)))
            cases = compare_runs(base, versus, across=across).cases
            self._known[key] = {(case.system, *case.group): case for case in cases}
        return self._known[key][(successor, *other.row.group)]


def _rename(contents: Contents, system: str, successor: str) -> Contents:
    """The run as if a historic system had had its successor's name, and nothing else had been run."""

    def renamed(case: Case) -> Case:
        return msgspec.structs.replace(case, system=successor)

    run = contents.run
    kept = msgspec.structs.replace(
        run,
        cases=tuple(renamed(case) for case in run.cases if case.system == system),
        left_out=(),
        systems={successor: run.systems[system]},
    )
    records = tuple(
        msgspec.structs.replace(record, case=renamed(record.case))
        for record in contents.records
        if not isinstance(record, Limit) and record.case.system == system
    )
    return msgspec.structs.replace(contents, run=kept, records=records)


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A system in one version, in one of the runs; times in seconds. None: there is none."""

    system: str  # the line's own, or the one that it has succeeded
    run: str
    environment: str
    version: str
    python: str  # "" where no environment was made
    status: Status
    reason: str = ""  # why it has no time, or no ratio
    wall_s: float | None = None
    wall_low_s: float | None = None
    wall_high_s: float | None = None
    ratio: float | None = None  # to the newest verified version
    ratio_low: float | None = None
    ratio_high: float | None = None
    verdict: ComparisonVerdict | None = None
    newest: bool = False  # what the others are compared with
    noisy: bool = False

    @property
    def release(self) -> str:
        """`tensorflow1 1.8.0`: the version where there is more than one framework."""
        return f"{self.system.partition('/')[0]} {self.version}"


class HistoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One system on one workload, phase, device and precision, from old to new."""

    system: str
    predecessor: str = ""  # the historic system that the line begins with
    framework: str
    workload: str
    phase: str
    device: str
    precision: str
    points: tuple[HistoryPoint, ...]
    published: tuple[Published, ...] = ()  # of other versions, on another machine: never compared

    @property
    def group(self) -> tuple[str, str, str, str]:
        return (self.workload, self.phase, self.device, self.precision)

    @property
    def name(self) -> str:
        return f"{self.predecessor} → {self.system}" if self.predecessor else self.system


def make_history(
    names: Sequence[str],
    runs: Sequence[Contents],
    *,
    systems: Sequence[str] = (),
    workloads: Collection[str] = (),
    across: Collection[DifferenceKind] = (),
) -> tuple[HistoryLine, ...]:
    """The lines of all systems that were to be run in more than one version, in the order of the runs' plans."""
    found: dict[tuple[str, ...], list[VersionRow]] = {}
    for number, contents in enumerate(runs):
        for row in make_rows(contents):
            if not workloads or row.workload in workloads or row.workload.partition("[")[0] in workloads:
                entry = VersionRow(number, row, _version(contents, row), contents.run.systems[row.system].successor)
                found.setdefault((row.system, *row.group), []).append(entry)
    comparer = VersionPairs(runs, across)
    lines = [
        _line(names, runs, entries, comparer)
        for entries in _with_predecessors(found)
        if _has_history(entries) and _wanted(entries, systems)
    ]
    if not lines:
        raise UserError(
            "no system of these runs was timed in one version and asked for in another",
            "measure some: rnnbench run pytorch/stack/eager -w ce-short --versions 1.0.0,2.13.0",
        )
    return tuple(lines)


def _with_predecessors(found: dict[tuple[str, ...], list[VersionRow]]) -> Iterator[list[VersionRow]]:
    """A historic system before its successor, where that is there too; a system without one by itself."""
    heirs = {(entries[0].successor, *group) for (_, *group), entries in found.items()} & found.keys()
    for (system, *group), entries in found.items():
        successor = (entries[0].successor, *group)
        if successor in found:
            yield [*sorted(entries, key=_age), *sorted(found[successor], key=_age)]
        elif (system, *group) not in heirs:
            yield sorted(entries, key=_age)


def _age(entry: VersionRow) -> Version:
    """The sort is stable: of one version in several runs, the run given last is the newest."""
    return version_key(entry.version)


def _wanted(entries: Sequence[VersionRow], systems: Sequence[str]) -> bool:
    names = {entry.row.system for entry in entries}
    return not systems or any(fnmatchcase(name, pattern) for name in names for pattern in systems)


def _version(contents: Contents, row: Row) -> str:
    """A row that has no environment, because none could be made, still says of which version it would be."""
    environment = contents.run.environments.get(row.environment)
    return environment.version if environment else row.environment.removeprefix(f"{row.framework}-")


def _has_history(entries: Sequence[VersionRow]) -> bool:
    places = {(entry.row.framework, entry.version) for entry in entries}
    return len(places) > 1 and any(entry.row.wall_s is not None for entry in entries)


def _line(
    names: Sequence[str], runs: Sequence[Contents], entries: Sequence[VersionRow], comparer: VersionPairs
) -> HistoryLine:
    proved = [entry for entry in entries if entry.row.status == "verified" and entry.row.wall_s is not None]
    newest = proved[-1] if proved else None
    first, last = entries[0].row, entries[-1].row
    return HistoryLine(
        system=last.system,
        predecessor="" if first.system == last.system else first.system,
        framework=last.framework,
        workload=last.workload,
        phase=last.phase,
        device=last.device,
        precision=last.precision,
        points=tuple(_point(names, runs, entry, newest, comparer) for entry in entries),
        published=published_versions(last.system, last.workload, last.phase, last.precision),
    )


def _point(
    names: Sequence[str], runs: Sequence[Contents], entry: VersionRow, newest: VersionRow | None, comparer: VersionPairs
) -> HistoryPoint:
    row = entry.row
    environment = runs[entry.run].run.environments.get(row.environment)
    point = HistoryPoint(
        system=row.system,
        run=names[entry.run],
        environment=row.environment,
        version=entry.version,
        python=environment.python_version if environment else "",
        status=row.status,
        reason=row.reason,
        wall_s=row.wall_s,
        wall_low_s=row.wall_low_s,
        wall_high_s=row.wall_high_s,
        noisy=row.noisy,
    )
    if newest is None or row.status != "verified" or row.wall_s is None:
        return point
    if entry is newest:
        return msgspec.structs.replace(point, ratio=1.0, ratio_low=1.0, ratio_high=1.0, newest=True)
    compared = comparer.between(newest, entry)
    if compared.ratio is None:
        return msgspec.structs.replace(point, reason=f"not compared: {compared.reason}")
    return msgspec.structs.replace(
        point,
        ratio=compared.ratio,
        ratio_low=compared.ratio_low,
        ratio_high=compared.ratio_high,
        verdict=compared.verdict,
    )
