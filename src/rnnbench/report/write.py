"""A report's files: everything is made before anything is written, and each file is there whole or not at all."""

from collections.abc import Callable, Iterable
from pathlib import Path

from rnnbench.errors import UserError
from rnnbench.files import write_atomically
from rnnbench.report.document import read_document

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
        from rnnbench.report.charts.render import as_file, as_png

        drawings = draw_charts(document, charted(document, charts), say)
        for one in drawings:
            if "svg" in chosen:
                files[f"charts/{one.name}.svg"] = as_file(one.svg, one.words)
            if "png" in chosen:
                say(f"charts: {one.name}.png")
                files[f"charts/{one.name}.png"] = as_png(one.svg)
    if {"csv", "json"} & chosen:
        from rnnbench.report.exports import as_csv, as_json

        files |= {"results.csv": as_csv(document)} if "csv" in chosen else {}
        files |= {"results.json": as_json(document)} if "json" in chosen else {}
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
