"""`rnnbench show`: a run's tables, from its folder alone."""

from pathlib import Path
from typing import Annotated

import typer

from rnnbench.cli.options import Json


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    as_json: Json = False,
) -> None:
    """Print a run: one table per workload, phase, device and precision.

    \b
    Examples:
      rnnbench show runs/2026-11-15-101500
      rnnbench show runs/2026-11-15-101500 --json > rows.json
    """
    import msgspec

    from rnnbench.analysis.rows import make_rows
    from rnnbench.report.terminal import show_run
    from rnnbench.store.folder import read_folder

    contents = read_folder(run)
    rows = make_rows(contents)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        for line in contents.damaged:
            typer.echo(f"rnnbench: launches.jsonl, {line}: skipped", err=True)
        return
    typer.echo(show_run(contents, rows))
