"""A report's files: everything is made before anything is written, and each file is there whole or not at all."""

import csv
import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from rnnbench.analysis.row import Row
from rnnbench.domain.run import Environment
from rnnbench.errors import UserError
from rnnbench.files import write_atomically
from rnnbench.report.document import Document, read_document
from rnnbench.version import __version__

FORMATS = ("html", "md", "csv", "json", "svg", "png")


def write_report(
    folders: list[Path],
    out: Path,
    formats: Iterable[str] = FORMATS,
    charts: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[Path]:
    """Report runs into a folder; returns what was written. `charts` is for how many groups they are drawn."""
    chosen = read_formats(formats)
    require_folder(out)
    say("reading and analysing")
    document = read_document(folders)
    files: dict[str, bytes] = {}
    drawings = []
    if {"html", "svg", "png"} & chosen:
        from rnnbench.report.charts.gallery import charted, draw_charts
        from rnnbench.report.charts.theme import as_file, as_png

        drawings = draw_charts(document, charted(document, charts), say)
        for one in drawings:
            if "svg" in chosen:
                files[f"charts/{one.name}.svg"] = as_file(one.svg, one.words)
            if "png" in chosen:
                say(f"charts: {one.name}.png")
                files[f"charts/{one.name}.png"] = as_png(one.svg)
    if {"csv", "json"} & chosen:
        from rnnbench.report.write import results_as_csv, results_as_json

        files |= {"results.csv": results_as_csv(document)} if "csv" in chosen else {}
        files |= {"results.json": results_as_json(document)} if "json" in chosen else {}
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
        raise UserError(f"cannot write to {out}: {error.strerror}", "give another folder with --out") from error
    return [out / name for name in files]


def require_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file", "give a folder with --out")


def read_formats(names: Iterable[str]) -> set[str]:
    chosen = set(names)
    unknown = sorted(chosen - set(FORMATS))
    if unknown or not chosen:
        what = f"'{unknown[0]}' is no format" if unknown else "no format is named"
        raise UserError(what, f"allowed: {', '.join(FORMATS)}")
    return chosen


SCHEMA = 1
_FIELDS = [field.name for field in msgspec.structs.fields(Row)]


def results_as_csv(document: Document) -> bytes:
    """Every field of every row, after the run's name. Numbers are written so that they read back the same."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", *_FIELDS])
    for name, rows in zip(document.names, document.analysis.rows, strict=True):
        for row in rows:
            writer.writerow([name, *msgspec.structs.astuple(row)])
    return text.getvalue().encode()


def results_as_json(document: Document) -> bytes:
    """Runs without samples, which are in their folders; intervals are [low, estimate, high]."""
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
                "method": run.method,
                "workloads": run.workloads,
                "environments": {name: _public(one) for name, one in run.environments.items()},
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
    """Without the paths of the machine it was made on: a report is for others."""
    fields = msgspec.structs.asdict(environment)
    return {name: value for name, value in fields.items() if name not in ("python", "folder")}
