"""Systems over versions as text, as Markdown and as JSON."""

from collections.abc import Sequence
from typing import Any

import msgspec

from rnnbench.analysis.history import Line, Point
from rnnbench.published import SOURCES, Published
from rnnbench.published.versions import version_of
from rnnbench.report import units
from rnnbench.report.charts.gallery import Chart
from rnnbench.report.comparison import Titled
from rnnbench.report.markdown_text import plain
from rnnbench.report.markdown_text import table as markdown_table
from rnnbench.report.table import RULE, Column, render

COLUMNS = (
    Column("version"),
    Column("Python"),
    Column("time", right=True),
    Column("95 % interval"),
    Column("× newest", right=True),
    Column("95 % interval"),
    Column("status"),
)
_NUMBERS = (2, 4)

LEGEND = """\
time        of one batch, with its interval by bootstrap over launches and samples
× newest    time over that of the newest verified version: above 1 it is slower; with its interval, by Student's t
status      verified rows alone are compared; ~ the machine was busy
published   what a study measured with versions that no registry offers any more, on another machine"""


def as_text(lines: Sequence[Line], runs: Sequence[Titled]) -> str:
    parts = ["\n".join(f"{run}" for run in runs)]
    for line in lines:
        rows: list[list[str] | None] = [*cells(line, len(runs) > 1)]
        if line.published:
            rows.insert(len(line.published), RULE)
        parts.append(f"{title(line)}\n" + render(COLUMNS, rows, indent="  "))
    return "\n\n".join([*parts, LEGEND])


def as_markdown(lines: Sequence[Line], runs: Sequence[Titled], charts: Sequence[Chart] = ()) -> str:
    parts = ["# From version to version", "\n".join(f"- {plain(str(run))}" for run in runs)]
    parts += [f"![{plain(chart.words)}](charts/{chart.name}.svg)" for chart in charts]
    headings = [column.heading for column in COLUMNS]
    for line in lines:
        rows = [[plain(cell) for cell in row] for row in cells(line, len(runs) > 1)]
        parts.append(f"## {plain(title(line))}\n\n" + markdown_table(headings, rows, _NUMBERS))
    parts.append("\n".join(f"- {each}" for each in (*map(plain, LEGEND.splitlines()), *sources(lines))))
    return "\n\n".join(parts) + "\n"


def as_fields(lines: Sequence[Line], runs: Sequence[Titled]) -> dict[str, Any]:
    """For JSON."""
    return {
        "runs": [
            {"run": one.name, "created": one.run.created, "machine": one.run.machine, "method": one.run.method}
            for one in runs
        ],
        "lines": [
            {
                **msgspec.structs.asdict(line),
                "published": [
                    {"version": version_of(row), "another_machine": True, **msgspec.structs.asdict(row)}
                    for row in line.published
                ],
            }
            for line in lines
        ],
    }


def title(line: Line) -> str:
    return f"{line.name}   {' · '.join(line.group)}"


def sources(lines: Sequence[Line]) -> list[str]:
    """Where the published rows are from."""
    found = dict.fromkeys(SOURCES[row.source] for line in lines for row in line.published)
    return [f"published: {one.title}, {one.link}; {one.software}" for one in found]


def cells(line: Line, several: bool) -> list[list[str]]:
    """The rows of a table: first what was published, then what was measured, each from old to new."""
    return [*map(_published, line.published), *(_cells(line, point, several) for point in line.points)]


def _cells(line: Line, point: Point, several: bool) -> list[str]:
    status = point.status + ("~" if point.noisy else "")
    than = " than the newest" if point.verdict in ("slower", "faster") else ""
    said = "the newest" if point.newest else f"{point.verdict or ''}{than}"
    remarks = "; ".join(filter(None, (said, point.reason, f"in {point.run}" if several else "")))
    return [
        point.release if line.predecessor else point.version,
        point.python or "–",
        units.seconds(point.wall_s),
        units.span(point.wall_low_s, point.wall_high_s, point.wall_s),
        units.times(point.ratio),
        "" if point.ratio_low is None or point.newest else f"[{point.ratio_low:.2f}, {point.ratio_high:.2f}]",
        f"{status}: {remarks}" if remarks else status,
    ]


def _published(row: Published) -> list[str]:
    deviation = "" if row.wall_std_s is None else f"± {units.seconds(row.wall_std_s)}"
    where = f"published: {row.when_and_where}, {'GPU' if row.device == 'cuda' else 'CPU'}, another machine"
    return [version_of(row), "–", units.seconds(row.wall_s), deviation, "–", "", where]
