"""`rnnbench history`: show systems over the versions of their framework."""

from pathlib import Path
from typing import Annotated

import typer

from rnnbench.cli.options import Json, RunFolders, Wide, print_json, say, terminal_width, warn_of_damage


def history(
    runs: RunFolders,
    system: Annotated[
        list[str] | None,
        typer.Option("--system", "-s", metavar="GLOB", help="Only these systems, e.g. 'pytorch/*/eager'. Repeatable."),
    ] = None,
    workload: Annotated[
        list[str] | None, typer.Option("--workload", "-w", metavar="NAME", help="Only these workloads. Repeatable.")
    ] = None,
    across: Annotated[
        str, typer.Option(metavar="KINDS", help="What may differ, separated by commas: source, machine, method.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write a page, Markdown, CSV, JSON and charts there.")
    ] = None,
    formats: Annotated[
        str,
        typer.Option("--format", metavar="LIST", help="With --out: html, md, csv, json, svg, png. Default: all."),
    ] = "html,md,csv,json,svg,png",
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Show systems over versions: the time in each, and its ratio to the newest, with intervals.

    Only verified rows are compared. Rows of several runs are compared when workload, source, machine and method
    are the same, or when --across allows the difference. What Braun (2018) published about older versions of
    PyTorch is shown too, marked as measured on another machine, and never compared.

    \b
    Examples:
      rnnbench run pytorch/stack/eager -w ce-short --versions 1.0.0,1.3.1,1.12.1,2.13.0 --out runs/versions
      rnnbench history last
      rnnbench history runs/versions runs/newer --system 'pytorch/*/eager' --out history
      rnnbench history runs/versions --json
    """
    from rnnbench import units
    from rnnbench.analysis.history import make_history
    from rnnbench.cli.options import differences
    from rnnbench.errors import UserError
    from rnnbench.report.comparison import NamedRun
    from rnnbench.report.document import run_names
    from rnnbench.report.history import as_fields, as_text, write_history
    from rnnbench.store import read_folder

    if out is not None and as_json:
        raise UserError("--out and --json cannot be combined", "give one of them; --out writes history.json too")
    contents = [read_folder(folder) for folder in runs]
    names = run_names(runs)
    lines = make_history(names, contents, systems=system or (), workloads=workload or (), across=differences(across))
    titled = [NamedRun(name, one.run) for name, one in zip(names, contents, strict=True)]
    if out is not None:
        for path in write_history(lines, titled, out, [part.strip() for part in formats.split(",") if part.strip()]):
            say(f"{path}  {units.size(path.stat().st_size)}")
    elif as_json:
        print_json(as_fields(lines, titled))
    else:
        say(as_text(lines, titled, None if wide else terminal_width()))
    for name, one in zip(names, contents, strict=True):
        warn_of_damage(f"{name}, ", one)
