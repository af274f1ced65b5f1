"""`rnnbench check`: whether a run is fit to be published."""

from pathlib import Path
from typing import Annotated

import typer

from rnnbench.cli.options import Json


def check(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    as_json: Json = False,
) -> None:
    """Judge whether a run is stable enough to publish, and say what to do where it is not.

    Looks at: completeness, verification, failures, number of launches, launches on a busy machine, wide
    intervals, drift within launches and over rounds, the processor's speed over the run, other load,
    the source. Exit code 1 when there is a problem; warnings alone are fit to publish.

    \b
    Examples:
      rnnbench check runs/2026-11-15-101500
      rnnbench check runs/2026-11-15-101500 --json
    """
    import msgspec

    from rnnbench.analysis.check import check_run, is_fit
    from rnnbench.report.checks import as_text
    from rnnbench.store.folder import read_folder

    findings = check_run(read_folder(run))
    fit = is_fit(findings)
    if as_json:
        fields = {"fit": fit, "findings": findings}
        typer.echo(msgspec.json.format(msgspec.json.encode(fields), indent=2).decode())
    else:
        typer.echo(as_text(findings))
    if not fit:
        raise typer.Exit(1)
