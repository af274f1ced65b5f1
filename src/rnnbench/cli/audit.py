"""`rnnbench audit`: check whether the columns of a table agree with each other."""

from pathlib import Path
from typing import Annotated

import typer

from rnnbench.cli.options import Json, print_json, run_folder, say


def audit(
    tables: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[TABLE]...",
            parser=run_folder,
            help="CSV or Markdown files, or runs. Default: the published tables.",
        ),
    ] = None,
    tolerance: Annotated[str, typer.Option(metavar="PERCENT", help="Report disagreements larger than this.")] = "2%",
    batches: Annotated[int, typer.Option(metavar="N", help="Timed batches, if a table does not say.")] = 0,
    batch: Annotated[int, typer.Option(metavar="N", help="Sequences in a batch, if a table does not say.")] = 0,
    as_json: Json = False,
) -> None:
    """Check every row of a table against itself: elapsed = batches × wall, throughput = batch / wall.

    Without a table, those of Braun (2018) and Carrot (2019) are checked. Rounding in print is allowed for.
    The exit code is 1 when a row contradicts itself.

    \b
    Examples:
      rnnbench audit
      rnnbench audit report/results.csv --tolerance 0.1%
      rnnbench audit somebodys-readme.md --batches 50 --batch 128
      rnnbench audit last
    """
    import msgspec

    from rnnbench.cli.options import at_least, percent
    from rnnbench.errors import UserError
    from rnnbench.published.audit import audit_as_fields, audit_table, read_table, show_audits
    from rnnbench.published.rows import TABLES

    allowed = percent(tolerance, "--tolerance")
    at_least(batches, 0, "--batches")
    at_least(batch, 0, "--batch")
    read = {
        str(path) if tables else path.name: [
            msgspec.structs.replace(line, batches=line.batches or batches or None, batch=line.batch or batch or None)
            for line in read_table(path)
        ]
        for path in tables or TABLES
    }
    all_lines = [line for lines in read.values() for line in lines]
    audits = [audit_table(name, lines, all_lines, allowed) for name, lines in read.items()]
    unchecked = [one.table for one in audits if one.unknown and not one.checked]
    if unchecked:
        what = f"{unchecked[0]} does not say how many batches were timed, or of what size"
        raise UserError(what, "give --batches and --batch")
    if as_json:
        print_json(list(map(audit_as_fields, audits)))
    else:
        say(show_audits(audits, allowed))
    if any(one.suspects for one in audits):
        raise typer.Exit(1)
