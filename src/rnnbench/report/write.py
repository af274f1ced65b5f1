"""Writes a report's files. All content is made before anything is written, and each file is written atomically."""

import csv
import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from rnnbench.analysis.row import Row
from rnnbench.domain.run import Environment
from rnnbench.errors import UserError
from rnnbench.files import require_writable, write_atomically
from rnnbench.report.document import Document, read_document
from rnnbench.store import Contents
from rnnbench.text import csv_cell
from rnnbench.version import __version__

FORMATS = ("html", "md", "csv", "json", "svg", "png")


def write_report(
    folders: list[Path],
    out: Path,
    formats: Iterable[str] = FORMATS,
    charts: int | None = None,
    say: Callable[[str], None] = lambda text: None,
    on_damage: Callable[[str, Contents], None] = lambda name, contents: None,
) -> list[Path]:
    """Write a report of the runs in these folders; returns the files.

    `on_damage` is told of each run with its name, to report the lines that could not be read.
    """
    chosen = read_formats(formats)
    require_folder(out)
    say("reading and analysing")
    document = read_document(folders)
    for name, contents in zip(document.names, document.runs, strict=True):
        on_damage(f"{name}, ", contents)
    return write_document(document, out, chosen, charts, say)


def write_document(
    document: Document,
    out: Path,
    formats: Iterable[str] = FORMATS,
    charts: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[Path]:
    """Write a report into a folder; returns the files. `charts` is the number of groups that have charts."""
    chosen = read_formats(formats)
    require_folder(out)
    files: dict[str, bytes] = {}
    drawings = []
    if {"html", "svg", "png"} & chosen:
        from rnnbench.report.charts.gallery import charted, draw_charts
        from rnnbench.report.charts.theme import as_file, as_png

        drawings = draw_charts(
            document, charted(document, charts), say, for_page="html" in chosen, for_files=bool({"svg", "png"} & chosen)
        )
        for chart in drawings:
            if "svg" in chosen:
                files[f"charts/{chart.name}.svg"] = as_file(chart.svg, chart.description)
            if "png" in chosen:
                say(f"charts: {chart.name}.png")
                files[f"charts/{chart.name}.png"] = as_png(chart.svg)
    if "csv" in chosen:
        files["results.csv"] = results_as_csv(document)
    if "json" in chosen:
        files["results.json"] = results_as_json(document)
    if "md" in chosen:
        from rnnbench.report.markdown import as_markdown

        files["report.md"] = as_markdown(document, drawings if "svg" in chosen else [])
    if "html" in chosen:
        from rnnbench.report.html import as_html

        say("the page")
        files["report.html"] = as_html(document, drawings)
    say("writing")
    return write_files(out, files)


def write_files(out: Path, files: dict[str, bytes]) -> list[Path]:
    try:
        for name, content in files.items():
            write_atomically(out / name, content)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}", "choose another folder") from error
    return [out / name for name in files]


def require_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file", "choose a folder")
    require_writable(out)


def read_formats(names: Iterable[str]) -> set[str]:
    chosen = set(names)
    unknown = sorted(chosen - set(FORMATS))
    if unknown or not chosen:
        what = f"'{unknown[0]}' is not a format" if unknown else "no format is given"
        raise UserError(what, f"allowed: {', '.join(FORMATS)}")
    return chosen


SCHEMA = 1
_FIELDS = [field.name for field in msgspec.structs.fields(Row)]


def results_as_csv(document: Document) -> bytes:
    """Every field of every row, after the run's name. Numbers keep all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", *_FIELDS])
    for name, rows in zip(document.names, document.analysis.rows, strict=True):
        for row in rows:
            writer.writerow(map(csv_cell, (name, *msgspec.structs.astuple(row))))
    return text.getvalue().encode()


def results_as_json(document: Document) -> bytes:
    """Everything but the samples, which are in the runs' folders. Intervals are [low, estimate, high]."""
    runs: list[dict[str, Any]] = []
    for name, contents in zip(document.names, document.runs, strict=True):
        run = contents.run
        runs.append(
            {
                "name": name,
                "created": run.created,
                "command": run.command,
                "tool": run.tool,
                "machine": run.machine,
                "machines": run.machines,
                "method": run.method,
                "workloads": run.workloads,
                "environments": {id: _public(environment) for id, environment in run.environments.items()},
                "damaged": contents.damaged,
            }
        )
    analysis = document.analysis
    content = {
        "schema": SCHEMA,
        "rnnbench": __version__,
        "runs": runs,
        "rows": [
            {"run": name, **msgspec.structs.asdict(row)}
            for name, rows in zip(document.names, analysis.rows, strict=True)
            for row in rows
        ],
        "peaks": analysis.peaks,
        "groups": analysis.groups,
        "claims": analysis.claims,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def _public(environment: Environment) -> dict[str, Any]:
    """Without the paths of the machine: a report is for others."""
    fields = msgspec.structs.asdict(environment)
    return {name: value for name, value in fields.items() if name not in ("python", "folder")}
