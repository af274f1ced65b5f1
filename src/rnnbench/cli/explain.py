"""`rnnbench explain`: what the numbers of one or several runs say."""

from pathlib import Path
from typing import Annotated

import typer

from rnnbench.cli.options import Json


def explain(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders: of one machine, or of several.")],
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", "-w", metavar="NAME", help="Only these workloads of the runs. Repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what the numbers mean: the gap, what each execution wins back, the limit, break-even, the seed's claims.

    Sentences come from verified rows and their intervals alone; nothing is measured. Give a CPU's and a
    GPU's run together to have the claims about both tested.

    \b
    Examples:
      rnnbench explain runs/2026-11-15-101500
      rnnbench explain runs/cpu runs/gpu -w ptb-lm
      rnnbench explain runs/2026-11-15-101500 --json > analysis.json
    """
    import msgspec

    from rnnbench.analysis.analyse import analyse
    from rnnbench.analysis.seed_rows import WORKLOAD
    from rnnbench.errors import UserError
    from rnnbench.report.explanation import explain as as_text
    from rnnbench.store.folder import read_folder

    contents = [read_folder(run) for run in runs]
    for run, one in zip(runs, contents, strict=True):
        for line in one.damaged:
            typer.echo(f"rnnbench: {run}/launches.jsonl, {line}: skipped", err=True)
    analysis = analyse(contents)
    shapes = {name: shape for one in contents for name, shape in one.run.workloads.items()}
    wanted = {name for name, shape in shapes.items() if not workload or {name, shape.id} & set(workload)}
    for name in workload or ():
        if not any(name in (known, shapes[known].id) for known in wanted):
            raise UserError(f"no run here has the workload '{name}'", f"there are: {', '.join(shapes)}")
    groups = [one for one in analysis.groups if one.group.workload in wanted]
    with_claims = not workload or any(shapes[name].id == WORKLOAD for name in wanted)
    if as_json:
        chosen = msgspec.structs.replace(analysis, groups=tuple(groups), claims=analysis.claims if with_claims else ())
        typer.echo(msgspec.json.format(msgspec.json.encode(chosen), indent=2).decode())
        return
    typer.echo(as_text(analysis, [one.run for one in contents], groups, with_claims))
