"""One system over the versions of its framework: the time in each, and its ratio to the newest version.

A historic system comes before the current one that its manifest names as its successor. Only verified rows have a
ratio, since the time of an unproved program says nothing about a version. Rows of several runs are compared as in
`compare`: another difference prevents the ratio unless the user asks to ignore that kind of difference.
"""

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec
from packaging.version import Version

from rnnbench.analysis.compare import CaseComparison, ComparisonVerdict, choose_environment, compare_runs
from rnnbench.analysis.differences import DifferenceKind
from rnnbench.analysis.levels import find_spreads
from rnnbench.analysis.row import Row, is_verified, shown_status
from rnnbench.analysis.rows import make_rows
from rnnbench.domain.case import Case
from rnnbench.domain.result import Limit, Status
from rnnbench.domain.system import version_key
from rnnbench.errors import UserError
from rnnbench.published.rows import Published, published_versions
from rnnbench.store import Contents


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A system in one version, in one of the runs; times in seconds. None: there is none."""

    system: str  # the line's system or its predecessor
    run: str
    environment: str
    version: str
    python: str  # "" where no environment could be created
    status: Status
    shown: str = ""  # the status, and what a reader must know of the time beside it
    reason: str = ""  # why it has no time, or no ratio
    wall_s: float | None = None
    wall_low_s: float | None = None
    wall_high_s: float | None = None
    uncertain: bool = False  # the interval of the time is wider than ±20 %
    ratio: float | None = None  # to the newest verified version
    ratio_low: float | None = None
    ratio_high: float | None = None
    ratio_uncertain: bool = False
    verdict: ComparisonVerdict | None = None
    newest: bool = False  # the others are compared with it
    noisy: bool = False
    steady: bool | None = None

    @property
    def release(self) -> str:
        """`tensorflow1 1.8.0`: the version with its framework, for lines of two frameworks."""
        return f"{self.system.partition('/')[0]} {self.version}"


class HistoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """One system on one workload, phase, device and precision, from old to new."""

    system: str
    predecessor: str = ""  # the historic system at the beginning of the line
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


class VersionRow(msgspec.Struct, frozen=True):
    """A row with its version and the run it is from."""

    run: int
    row: Row
    version: str
    successor: str = ""


class VersionPairs:
    """Compares two versions. Each pair of environments is compared once, for all systems."""

    def __init__(self, runs: Sequence[Contents], across: Collection[DifferenceKind]) -> None:
        self._runs = runs
        self._spreads = [find_spreads(contents) for contents in runs]
        self._across: tuple[DifferenceKind, ...] = ("environment", *(kind for kind in across if kind != "environment"))
        self._known: dict[tuple[object, ...], dict[tuple[str, ...], CaseComparison]] = {}

    def compare(self, newest: VersionRow, older: VersionRow) -> CaseComparison:
        """The older version over the newest."""
        successor, system = newest.row.system, older.row.system
        renamed = (system, successor) if system != successor else ()
        key = (newest.run, newest.row.environment, older.run, older.row.environment, renamed)
        if key not in self._known:
            a, b = (choose_environment(self._runs[each.run], each.row.environment) for each in (newest, older))
            across = self._across
            if renamed:  # the historic system has other source code, and that is what is compared
                b = _rename(b, system, successor)
                across = (*across, *(() if "source" in across else ("source",)))
            spreads = (self._spreads[newest.run], self._spreads[older.run])
            cases = compare_runs(a, b, across=across, spreads=spreads).cases
            self._known[key] = {(case.system, *case.group): case for case in cases}
        return self._known[key][(successor, *older.row.group)]


def _rename(contents: Contents, system: str, successor: str) -> Contents:
    """The run reduced to one historic system, under its successor's name."""

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


def make_history(
    names: Sequence[str],
    runs: Sequence[Contents],
    *,
    systems: Sequence[str] = (),
    workloads: Collection[str] = (),
    across: Collection[DifferenceKind] = (),
) -> tuple[HistoryLine, ...]:
    """A line for every system that was planned in more than one version, in the order of the runs' plans."""
    rows: dict[tuple[str, ...], list[VersionRow]] = {}
    for number, contents in enumerate(runs):
        for row in make_rows(contents):
            if not workloads or row.workload in workloads or row.workload.partition("[")[0] in workloads:
                successor = contents.run.systems[row.system].successor
                version_row = VersionRow(number, row, _version(contents, row), successor)
                rows.setdefault((row.system, *row.group), []).append(version_row)
    pairs = VersionPairs(runs, across)
    lines = [
        _line(names, runs, line, pairs)
        for line in _with_predecessors(rows)
        if _has_history(line) and _wanted(line, systems)
    ]
    if not lines:
        raise UserError(
            "no system of these runs was planned in two versions and timed in one of them",
            "measure several versions: rnnbench run pytorch/stack/eager -w ce-short --versions 1.0.0,2.13.0",
        )
    return tuple(lines)


def _with_predecessors(rows: dict[tuple[str, ...], list[VersionRow]]) -> Iterator[list[VersionRow]]:
    """The rows of each line, oldest first: a historic system is joined with its successor if both were planned."""
    successors = {(versions[0].successor, *group) for (_, *group), versions in rows.items()} & rows.keys()
    for (system, *group), versions in rows.items():
        successor = (versions[0].successor, *group)
        if successor in rows:
            yield [*sorted(versions, key=_version_order), *sorted(rows[successor], key=_version_order)]
        elif (system, *group) not in successors:
            yield sorted(versions, key=_version_order)


def _version_order(row: VersionRow) -> Version:
    """The sort is stable: of one version in several runs, the run given last counts as the newest."""
    return version_key(row.version)


def _wanted(line: Sequence[VersionRow], systems: Sequence[str]) -> bool:
    names = {each.row.system for each in line}
    return not systems or any(fnmatchcase(name, pattern) for name in names for pattern in systems)


def _version(contents: Contents, row: Row) -> str:
    """Where no environment could be created, its name still tells the version."""
    environment = contents.run.environments.get(row.environment)
    return environment.version if environment else row.environment.removeprefix(f"{row.framework}-")


def _has_history(line: Sequence[VersionRow]) -> bool:
    versions = {(each.row.framework, each.version) for each in line}
    return len(versions) > 1 and any(each.row.wall_s is not None for each in line)


def _line(
    names: Sequence[str], runs: Sequence[Contents], line: Sequence[VersionRow], pairs: VersionPairs
) -> HistoryLine:
    verified = [each for each in line if is_verified(each.row)]
    newest = verified[-1] if verified else None
    first, last = line[0].row, line[-1].row
    return HistoryLine(
        system=last.system,
        predecessor="" if first.system == last.system else first.system,
        framework=last.framework,
        workload=last.workload,
        phase=last.phase,
        device=last.device,
        precision=last.precision,
        points=tuple(_point(names, runs, each, newest, pairs) for each in line),
        published=published_versions(last.system, last.workload, last.phase, last.precision),
    )


def _point(
    names: Sequence[str], runs: Sequence[Contents], one: VersionRow, newest: VersionRow | None, pairs: VersionPairs
) -> HistoryPoint:
    row = one.row
    environment = runs[one.run].run.environments.get(row.environment)
    point = HistoryPoint(
        system=row.system,
        run=names[one.run],
        environment=row.environment,
        version=one.version,
        python=environment.python_version if environment else "",
        status=row.status,
        shown=shown_status(row),
        reason=row.reason,
        wall_s=row.wall_s,
        wall_low_s=row.wall_low_s,
        wall_high_s=row.wall_high_s,
        uncertain=row.uncertain,
        noisy=row.noisy,
        steady=row.steady,
    )
    if newest is None or not is_verified(row):
        return point
    if one is newest:
        return msgspec.structs.replace(point, ratio=1.0, ratio_low=1.0, ratio_high=1.0, newest=True)
    compared = pairs.compare(newest, one)
    if compared.ratio is None:
        return msgspec.structs.replace(point, reason=f"not compared: {compared.reason}")
    return msgspec.structs.replace(
        point,
        ratio=compared.ratio,
        ratio_low=compared.ratio_low,
        ratio_high=compared.ratio_high,
        ratio_uncertain=compared.ratio_uncertain,
        verdict=compared.verdict,
    )
