"""Systems over the versions of their frameworks: text, Markdown, JSON, CSV and charts; the page is in another file."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rnnbench import units
from rnnbench.analysis.history import HistoryLine, HistoryPoint
from rnnbench.published.rows import SOURCES, Published, version_of
from rnnbench.report.charts.gallery import Chart
from rnnbench.report.charts.theme import NARROW, as_file, as_png, draw
from rnnbench.report.charts.versions import compared, versions
from rnnbench.report.comparison import NamedRun
from rnnbench.report.document import machine_name
from rnnbench.report.history_page import as_html
from rnnbench.report.write import read_formats, require_folder, write_files
from rnnbench.text import RULE, Column, csv_cell, escape_markdown, markdown_table, render_fitted

COLUMNS = (
    Column("version"),
    Column("Python", drop=3),
    Column("time", right=True),
    Column("95 % interval", drop=2),
    Column("× newest", right=True),
    Column("95 % interval", drop=1),
    Column("status"),
)
_NUMBERS = (2, 4)
LEGEND = f"""\
time        of one batch, with its interval by Student's t over launches
× newest    time over that of the newest verified version: above 1 is slower; with its interval
{units.UNCERTAIN_MARK:12}{units.UNCERTAIN_MEANING}
status      only verified rows are compared; ~ the machine was busy
published   measured by others on another machine, with versions that no registry offers any more"""


def as_text(lines: Sequence[HistoryLine], runs: Sequence[NamedRun], width: int | None = None) -> str:
    parts = ["\n".join(str(run) for run in runs)]
    for line in lines:
        rows: list[list[str] | None] = [*_table_rows(line, len(runs) > 1)]
        if line.published:
            rows.insert(len(line.published), RULE)
        parts.append(f"{_title(line)}\n" + render_fitted(COLUMNS, rows, width, indent="  ")[0])
    return "\n\n".join([*parts, LEGEND])


def as_markdown(lines: Sequence[HistoryLine], runs: Sequence[NamedRun], charts: Sequence[Chart] = ()) -> str:
    parts = ["# From version to version", "\n".join(f"- {escape_markdown(str(run))}" for run in runs)]
    parts += [f"![{escape_markdown(chart.description)}](charts/{chart.name}.svg)" for chart in charts]
    headings = [column.heading for column in COLUMNS]
    for line in lines:
        rows = [[escape_markdown(cell) for cell in row] for row in _table_rows(line, len(runs) > 1)]
        parts.append(f"## {escape_markdown(_title(line))}\n\n" + markdown_table(headings, rows, _NUMBERS))
    parts.append("\n".join(f"- {each}" for each in (*map(escape_markdown, LEGEND.splitlines()), *_sources(lines))))
    return "\n\n".join(parts) + "\n"


def as_fields(lines: Sequence[HistoryLine], runs: Sequence[NamedRun]) -> dict[str, Any]:
    """For JSON."""
    return {
        "runs": [
            {"run": named.name, "created": named.run.created, "machine": named.run.machine, "method": named.run.method}
            for named in runs
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


def write_history(
    lines: Sequence[HistoryLine], runs: Sequence[NamedRun], out: Path, formats: Iterable[str]
) -> list[Path]:
    """Write a report into a folder; returns the files. Nothing is written before all of them are made."""
    chosen = read_formats(formats)
    require_folder(out)
    charts = draw_history(lines, runs, for_page="html" in chosen) if {"html", "svg", "png"} & chosen else []
    files: dict[str, bytes] = {}
    for chart in charts:
        if "svg" in chosen:
            files[f"charts/{chart.name}.svg"] = as_file(chart.svg, chart.description)
        if "png" in chosen:
            files[f"charts/{chart.name}.png"] = as_png(chart.svg)
    if "csv" in chosen:
        files["history.csv"] = _as_csv(lines)
    if "json" in chosen:
        files["history.json"] = msgspec.json.format(msgspec.json.encode(as_fields(lines, runs)), indent=1) + b"\n"
    if "md" in chosen:
        files["history.md"] = as_markdown(lines, runs, charts if "svg" in chosen else []).encode()
    if "html" in chosen:
        files["history.html"] = as_html(
            lines,
            [str(run) for run in runs],
            charts,
            headings=[(column.heading, column.right) for column in COLUMNS],
            tables=[(_title(line), _table_rows(line, len(runs) > 1)) for line in lines],
            legend=LEGEND,
            sources=_sources(lines),
        )
    return write_files(out, files)


def draw_history(lines: Sequence[HistoryLine], runs: Sequence[NamedRun], for_page: bool = False) -> list[Chart]:
    """One chart for each framework and group in which two versions could be compared."""
    groups: dict[tuple[str, ...], list[HistoryLine]] = {}
    for line in lines:
        if len(compared(line)) > 1:
            groups.setdefault((line.framework, *line.group), []).append(line)
    charts = []
    for (framework, *group), members in groups.items():
        machines = "; ".join(dict.fromkeys(machine_name(named.run, members[0].device) for named in runs))
        heading = f"From version to version: {framework}, {' · '.join(group)}"
        name = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", part).strip("-.") for part in ("versions", framework, *group))
        description = f"{framework}, {' · '.join(group)}: time of one batch over versions, relative to the newest."
        subtitle = f"verified rows, with 95 % interval · {machines}"
        drawn = draw(versions(members, title=heading, subtitle=subtitle))
        narrow = draw(versions(members, title=heading, subtitle=subtitle, width=NARROW)) if for_page else ""
        charts.append(Chart(0, "versions", name[:150], description, drawn, narrow))
    return charts


#: Headings, and the fields below them. A line is named after its newest system; each point has the one it is of.
_LINE_FIELDS = {
    "line": "system", "workload": "workload", "phase": "phase", "device": "device", "precision": "precision"
}  # fmt: skip
_POINT_FIELDS = [field.name for field in msgspec.structs.fields(HistoryPoint)]


def _as_csv(lines: Sequence[HistoryLine]) -> bytes:
    """One line for every measured point; published rows are in the other files only."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_LINE_FIELDS, *_POINT_FIELDS])
    for line in lines:
        for point in line.points:
            cells = (*(getattr(line, name) for name in _LINE_FIELDS.values()), *msgspec.structs.astuple(point))
            writer.writerow(map(csv_cell, cells))
    return text.getvalue().encode()


def _title(line: HistoryLine) -> str:
    return f"{line.name}   {' · '.join(line.group)}"


def _sources(lines: Sequence[HistoryLine]) -> list[str]:
    """Where the published rows come from."""
    sources = dict.fromkeys(SOURCES[row.source] for line in lines for row in line.published)
    return [f"published: {source.title}, {source.link}; {source.software}" for source in sources]


def _table_rows(line: HistoryLine, several_runs: bool) -> list[list[str]]:
    """The published rows first, then the measured ones, each oldest first."""
    measured = [_measured_cells(line, point, several_runs) for point in line.points]
    return [*map(_published_cells, line.published), *measured]


def _measured_cells(line: HistoryLine, point: HistoryPoint, several_runs: bool) -> list[str]:
    status = point.shown
    than = " than the newest" if point.verdict in ("slower", "faster") else ""
    verdict = "the newest" if point.newest else f"{point.verdict or ''}{than}"
    remarks = "; ".join(filter(None, (verdict, point.reason, f"in {point.run}" if several_runs else "")))
    return [
        point.release if line.predecessor else point.version,
        point.python or "–",
        units.marked(units.seconds(point.wall_s), point.uncertain),
        units.span(point.wall_low_s, point.wall_high_s, point.wall_s),
        units.marked(units.times(point.ratio), point.ratio_uncertain),
        "" if point.ratio_low is None or point.newest else f"[{point.ratio_low:.2f}, {point.ratio_high:.2f}]",
        f"{status}: {remarks}" if remarks else status,
    ]


def _published_cells(row: Published) -> list[str]:
    deviation = "" if row.wall_std_s is None else f"± {units.seconds(row.wall_std_s)}"
    where = f"published: {row.when_and_where}, {'GPU' if row.device == 'cuda' else 'CPU'}, another machine"
    return [version_of(row), "–", units.seconds(row.wall_s), deviation, "–", "", where]
