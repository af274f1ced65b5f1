"""One system over the versions of its framework: the time in each, and how many times that of the newest.

Only verified rows have a ratio: what an unproved program takes says nothing of a version. Rows of several
runs are compared as `compare` does it: what else differs stops the ratio unless it is to be gone across.
"""

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

import msgspec

from rnnbench.analysis.compare import Compared, Verdict, compare_runs
from rnnbench.analysis.differences import Kind
from rnnbench.analysis.pairs import choose_environment
from rnnbench.analysis.rows import Row, make_rows
from rnnbench.domain.result import Status
from rnnbench.domain.system import version_key
from rnnbench.errors import UserError
from rnnbench.published.rows import Published
from rnnbench.published.versions import published_versions
from rnnbench.store.folder import Contents


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A system in one version, in one of the runs; times in seconds. None: there is none."""

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
    verdict: Verdict | None = None
    newest: bool = False  # what the others are compared with
    noisy: bool = False


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One system on one workload, phase, device and precision, from old to new."""

    system: str
    framework: str
    workload: str
    phase: str
    device: str
    precision: str
    points: tuple[Point, ...]
    published: tuple[Published, ...] = ()  # of other versions, on another machine: never compared

    @property
    def group(self) -> tuple[str, str, str, str]:
        return (self.workload, self.phase, self.device, self.precision)


class _Entry(msgspec.Struct, frozen=True):
    """A row with the run it is from."""

    run: int
    row: Row
    version: str


def make_history(
    names: Sequence[str],
    runs: Sequence[Contents],
    *,
    systems: Sequence[str] = (),
    workloads: Collection[str] = (),
    across: Collection[Kind] = (),
) -> tuple[Line, ...]:
    """The lines of all systems that were to be run in more than one version, in the order of the runs' plans."""
    found: dict[tuple[str, ...], list[_Entry]] = {}
    for number, contents in enumerate(runs):
        for row in make_rows(contents):
            if _wanted(row, systems, workloads):
                entry = _Entry(number, row, _version(contents, row))
                found.setdefault((row.system, *row.group), []).append(entry)
    comparer = _Comparer(runs, across)
    lines = [_line(names, runs, entries, comparer) for entries in found.values() if _has_history(entries)]
    if not lines:
        raise UserError(
            "no system of these runs was timed in one version and asked for in another",
            "measure some: rnnbench run pytorch/stack/eager -w ce-short --versions 1.0.0,2.13.0",
        )
    return tuple(lines)


def _wanted(row: Row, systems: Sequence[str], workloads: Collection[str]) -> bool:
    return (not systems or any(fnmatchcase(row.system, pattern) for pattern in systems)) and (
        not workloads or row.workload in workloads or row.workload.partition("[")[0] in workloads
    )


def _version(contents: Contents, row: Row) -> str:
    """A row that has no environment, because none could be made, still says of which version it would be."""
    environment = contents.run.environments.get(row.environment)
    return environment.version if environment else row.environment.removeprefix(f"{row.framework}-")


def _has_history(entries: Sequence[_Entry]) -> bool:
    return len({entry.version for entry in entries}) > 1 and any(entry.row.wall_s is not None for entry in entries)


def _line(names: Sequence[str], runs: Sequence[Contents], entries: list[_Entry], comparer: "_Comparer") -> Line:
    # The sort is stable: of one version in several runs, the run given last is the newest.
    ordered = sorted(entries, key=lambda entry: version_key(entry.version))
    proved = [entry for entry in ordered if entry.row.status == "verified" and entry.row.wall_s is not None]
    newest = proved[-1] if proved else None
    first = ordered[0].row
    return Line(
        system=first.system,
        framework=first.framework,
        workload=first.workload,
        phase=first.phase,
        device=first.device,
        precision=first.precision,
        points=tuple(_point(names, runs, entry, newest, comparer) for entry in ordered),
        published=published_versions(first.system, first.workload, first.phase, first.precision),
    )


def _point(
    names: Sequence[str], runs: Sequence[Contents], entry: _Entry, newest: _Entry | None, comparer: "_Comparer"
) -> Point:
    row = entry.row
    environment = runs[entry.run].run.environments.get(row.environment)
    point = Point(
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


class _Comparer:
    """Compares environments of runs, each pair of them once, whatever system asks."""

    def __init__(self, runs: Sequence[Contents], across: Collection[Kind]) -> None:
        self._runs = runs
        self._across: tuple[Kind, ...] = ("environment", *(kind for kind in across if kind != "environment"))
        self._known: dict[tuple[int, str, int, str], dict[tuple[str, ...], Compared]] = {}

    def between(self, newest: _Entry, other: _Entry) -> Compared:
        key = (newest.run, newest.row.environment, other.run, other.row.environment)
        if key not in self._known:
            base, versus = (
                choose_environment(self._runs[entry.run], entry.row.environment) for entry in (newest, other)
            )
            cases = compare_runs(base, versus, across=self._across).cases
            self._known[key] = {(case.system, *case.group): case for case in cases}
        return self._known[key][(other.row.system, *other.row.group)]
