"""The files of `rnnbench history --out`: a page, Markdown, CSV, JSON and a chart for each framework and group."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from jinja2 import Environment, StrictUndefined

from rnnbench import __version__
from rnnbench.analysis.history import Line, Point
from rnnbench.report.charts.gallery import Chart
from rnnbench.report.charts.render import as_file, as_png, draw
from rnnbench.report.charts.versions import compared, versions
from rnnbench.report.comparison import Titled
from rnnbench.report.document import machine_name
from rnnbench.report.history import COLUMNS, LEGEND, as_fields, as_markdown, cells, sources, title
from rnnbench.report.html import colours, read_part
from rnnbench.report.write import read_formats, require_folder, write_files

_LINE_FIELDS = ("system", "workload", "phase", "device", "precision")
_POINT_FIELDS = [field.name for field in msgspec.structs.fields(Point)]


def write_history(lines: Sequence[Line], runs: Sequence[Titled], out: Path, formats: Iterable[str]) -> list[Path]:
    """Everything is made before anything is written; returns what was."""
    chosen = read_formats(formats)
    require_folder(out)
    charts = draw_history(lines, runs) if {"html", "svg", "png"} & chosen else []
    files: dict[str, bytes] = {}
    for chart in charts:
        if "svg" in chosen:
            files[f"charts/{chart.name}.svg"] = as_file(chart.svg, chart.words)
        if "png" in chosen:
            files[f"charts/{chart.name}.png"] = as_png(chart.svg)
    if "csv" in chosen:
        files["history.csv"] = _as_csv(lines)
    if "json" in chosen:
        files["history.json"] = msgspec.json.format(msgspec.json.encode(as_fields(lines, runs)), indent=1) + b"\n"
    if "md" in chosen:
        files["history.md"] = as_markdown(lines, runs, charts if "svg" in chosen else []).encode()
    if "html" in chosen:
        files["history.html"] = _as_html(lines, runs, charts)
    return write_files(out, files)


def draw_history(lines: Sequence[Line], runs: Sequence[Titled]) -> list[Chart]:
    """One for each framework and group in which any two versions could be compared."""
    groups: dict[tuple[str, ...], list[Line]] = {}
    for line in lines:
        if len(compared(line)) > 1:
            groups.setdefault((line.framework, *line.group), []).append(line)
    charts = []
    for (framework, *group), members in groups.items():
        place = "; ".join(dict.fromkeys(machine_name(one.run, members[0].device) for one in runs))
        heading = f"From version to version: {framework}, {' · '.join(group)}"
        name = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", part).strip("-.") for part in ("versions", framework, *group))
        words = f"{framework}, {' · '.join(group)}: time of one batch over versions, relative to the newest."
        drawn = draw(versions(members, title=heading, subtitle=f"verified rows, with 95 % interval · {place}"))
        charts.append(Chart(0, "versions", name[:150], words, drawn))
    return charts


def _as_csv(lines: Sequence[Line]) -> bytes:
    """One flat line for every point; published rows are in the other files."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_LINE_FIELDS, *_POINT_FIELDS])
    for line in lines:
        for point in line.points:
            writer.writerow([*(getattr(line, name) for name in _LINE_FIELDS), *msgspec.structs.astuple(point)])
    return text.getvalue().encode()


def _as_html(lines: Sequence[Line], runs: Sequence[Titled], charts: Sequence[Chart]) -> bytes:
    """Static: no script, so none is allowed. Jinja2 escapes all text, Vega that of its drawings."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(read_part("history.html")).render(
        version=__version__,
        runs=[str(run) for run in runs],
        charts=charts,
        tables=[(title(line), cells(line, len(runs) > 1)) for line in lines],
        columns=COLUMNS,
        legend=[(each[:12].strip(), each[12:]) for each in LEGEND.splitlines()],
        sources=sources(lines),
        style=colours(line.framework for line in lines) + read_part("style.css"),
    )
    return page.encode()
