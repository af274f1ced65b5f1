"""`history.html`: what changed from version to version. It opens on the answer; the times of each version are folded.

A page without scripts. Jinja2 escapes all text, and Vega the text in its drawings.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined

from rnnbench import units
from rnnbench.analysis.history import HistoryLine, HistoryPoint
from rnnbench.report.charts.gallery import Chart
from rnnbench.report.html import colours, read_part
from rnnbench.version import __version__


class Change(NamedTuple):
    """One system between two versions that were compared."""

    line: HistoryLine
    older: HistoryPoint
    newest: HistoryPoint

    @property
    def times(self) -> str:
        return units.marked(units.times(self.older.ratio), self.older.ratio_uncertain)

    @property
    def versions(self) -> tuple[str, str]:
        """With their framework, where a historic one comes before it."""
        points = (self.older, self.newest)
        older, newest = (point.release if self.line.predecessor else point.version for point in points)
        return older, newest


class VersionCell(NamedTuple):
    """One version of a system: its ratio to the newest, or why there is none."""

    text: str
    verdict: str  # of the older version: `slower` is good news


class VersionTable(NamedTuple):
    """The systems of one framework and group, over its versions."""

    title: str
    versions: list[str]
    rows: list[tuple[str, list[VersionCell | None]]]


class Opening(NamedTuple):
    """What the page says first."""

    verdict: str
    name: str
    times: str
    change: str
    sentences: list[str]
    tables: list[VersionTable]


def open_history(lines: Sequence[HistoryLine]) -> Opening:
    oldest = [change for line in lines if (change := _since_the_oldest(line))]
    won = [change for change in oldest if change.older.verdict == "slower"]
    most = max(won, key=lambda change: change.older.ratio or 0.0, default=None)
    sentences = [_count(oldest), *_lost(lines), *_without_ratio(lines)]
    return Opening(
        verdict="has gained most" if most else "no system is seen to have become faster",
        name=most.line.name if most else "",
        times=most.times if most else "",
        change=f"as fast in {most.versions[1]} as in {most.versions[0]}" if most else "",
        sentences=sentences,
        tables=_tables(lines),
    )


def _since_the_oldest(line: HistoryLine) -> Change | None:
    """From the oldest to the newest version with a ratio."""
    newest = next((point for point in line.points if point.newest), None)
    older = next((point for point in line.points if point.ratio is not None and not point.newest), None)
    return Change(line, older, newest) if newest and older else None


def _count(changes: Sequence[Change]) -> str:
    if not changes:
        return "No two versions could be compared."
    of = {verdict: sum(change.older.verdict == verdict for change in changes) for verdict in ("slower", "faster")}
    systems = "1 system" if len(changes) == 1 else f"{len(changes)} systems"
    rest = len(changes) - sum(of.values())
    return (
        f"Of {systems}, from the oldest to the newest version {of['slower']} became faster, {of['faster']} became "
        f"slower, and of {rest} no difference is seen."
    )


def _lost(lines: Sequence[HistoryLine]) -> list[str]:
    """The largest loss against any older version."""
    losses = [
        Change(line, point, newest)
        for line in lines
        for newest in line.points
        if newest.newest
        for point in line.points
        if point.verdict == "faster"
    ]
    if not losses:
        return ["No system was seen to be faster in an older version."]
    worst = min(losses, key=lambda change: change.older.ratio or 1.0)
    return [
        f"Most lost: {worst.line.name}, which in {worst.versions[0]} took {worst.times} of its time in "
        f"{worst.versions[1]}."
    ]


def _without_ratio(lines: Sequence[HistoryLine]) -> list[str]:
    points = [point for line in lines for point in line.points]
    missing = sum(point.ratio is None for point in points)
    return [f"{missing} of {len(points)} rows could not be compared; the tables below say why."] if missing else []


def _tables(lines: Sequence[HistoryLine]) -> list[VersionTable]:
    groups: dict[tuple[str, ...], list[HistoryLine]] = {}
    for line in lines:
        groups.setdefault((line.framework, *line.group), []).append(line)
    return [_table(" · ".join(group), members) for group, members in groups.items()]


def _table(title: str, lines: Sequence[HistoryLine]) -> VersionTable:
    two_frameworks = any(line.predecessor for line in lines)
    names = {point: point.release if two_frameworks else point.version for line in lines for point in line.points}
    # Oldest first in every line: a version comes after all that precede it in some line.
    versions: list[str] = []
    for line in lines:
        place = 0
        for point in line.points:
            if names[point] in versions:
                place = versions.index(names[point]) + 1
            else:
                versions.insert(place, names[point])
                place += 1
    rows = []
    for line in lines:
        cells = {names[point]: _cell(point) for point in line.points}
        rows.append((line.name, [cells.get(version) for version in versions]))
    return VersionTable(title, versions, rows)


def _cell(point: HistoryPoint) -> VersionCell:
    if point.ratio is None:
        return VersionCell(point.shown or point.status, "")
    if point.newest:
        return VersionCell(units.marked(units.seconds(point.wall_s), point.uncertain), "")
    return VersionCell(units.marked(units.times(point.ratio), point.ratio_uncertain), point.verdict or "")


def as_html(
    lines: Sequence[HistoryLine],
    runs: Sequence[str],
    charts: Sequence[Chart],
    *,
    headings: Sequence[tuple[str, bool]],
    tables: Sequence[tuple[str, list[list[str]]]],
    legend: str,
    sources: Sequence[str],
) -> bytes:
    """`headings` are those of the folded tables, with whether their column is aligned to the right."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(read_part("history.html")).render(
        version=__version__,
        opening=open_history(lines),
        runs=runs,
        charts=charts,
        headings=headings,
        tables=tables,
        legend=[(each[:12].strip(), each[12:]) for each in legend.splitlines()],
        sources=sources,
        style=colours(line.framework for line in lines) + read_part("style.css"),
    )
    return page.encode()
