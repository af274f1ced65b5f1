"""`rnnbench report`: write runs as a page, Markdown, CSV, JSON and charts."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from rnnbench.cli.options import RunFolders, say
from rnnbench.text import printable


def report(
    runs: RunFolders,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write. Created if it does not exist.")],
    formats: Annotated[
        str, typer.Option("--format", metavar="LIST", help="Any of html, md, csv, json, svg, png. Default: all.")
    ] = "html,md,csv,json,svg,png",
    charts: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Draw charts of the first N groups. Default: all if at most 60, else the first."
        ),
    ] = None,
) -> None:
    """Write report.html, report.md, results.csv, results.json and charts of stored runs.

    A group is one workload, phase, device and precision of one run. The same runs give the same files.

    \b
    Examples:
      rnnbench report last --out report
      rnnbench report runs/cpu runs/gpu --out both
      rnnbench report runs/gpu --out plain --format md,svg
    """
    from rnnbench import units
    from rnnbench.cli.options import at_least, warn_of_damage
    from rnnbench.report.write import write_report

    if charts is not None:
        at_least(charts, 0, "--charts")
    names = [name for name in (part.strip() for part in formats.split(",")) if name]
    written = write_report(runs, out, names, charts, _progress, warn_of_damage)
    _progress("")
    drawn = [path for path in written if path.parent.name == "charts"]
    for path in written:
        if path not in drawn:
            say(f"{path}  {units.size(path.stat().st_size)}")
    if drawn:
        say(f"{drawn[0].parent}  {len(drawn)} files")


def _progress(text: str) -> None:
    """Show progress on one line that the next call overwrites; nothing if standard error is not a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{printable(text[:100])}", end="", file=sys.stderr, flush=True)
