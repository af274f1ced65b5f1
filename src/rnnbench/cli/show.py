"""`rnnbench show`, `check` and `explain`: what the numbers of stored runs are, and what they mean."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rnnbench.cli.options import Json, print_json, say, warn_of_damage

if TYPE_CHECKING:
    from rnnbench.store import Contents


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
    from rnnbench.store import read_folder

    print_run(read_folder(run), as_json)


def check(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    as_json: Json = False,
) -> None:
    """Judge whether a run is stable enough to publish, and suggest what to do where it is not.

    Checks completeness, verification, also at full size, failures, rows above the machine's limit, number of
    launches, launches on a busy machine, wide intervals, rows that are not steady, drift within launches and
    over rounds, the processor's speed over the run, other load, nodes that differ and the source. The exit code
    is 1 when there is a problem; a run with warnings alone is fit to publish.

    \b
    Examples:
      rnnbench check runs/2026-11-15-101500
      rnnbench check runs/2026-11-15-101500 --json
    """
    from rnnbench.analysis.check import check_run, is_fit
    from rnnbench.cli.answers import show_check
    from rnnbench.store import read_folder

    findings = check_run(read_folder(run))
    fit = is_fit(findings)
    if as_json:
        fields = {"fit": fit, "findings": findings}
        print_json(fields)
    else:
        say(show_check(findings))
    if not fit:
        raise typer.Exit(1)


def explain(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders, of one or several machines.")],
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", "-w", metavar="NAME", help="Only these workloads. Repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain what the numbers mean: the gap, what each execution recovers, the limit, break-even, published claims.

    The sentences use only verified rows and their intervals; nothing is measured. The claims are those of Carrot
    (2019), https://github.com/lcy-seso/Carrot. To test those about both devices, give a CPU run and a GPU run.

    \b
    Examples:
      rnnbench explain runs/2026-11-15-101500
      rnnbench explain runs/cpu runs/gpu -w ptb-lm
      rnnbench explain runs/2026-11-15-101500 --json > analysis.json
    """
    import msgspec

    from rnnbench.errors import UserError
    from rnnbench.published.claims import WORKLOAD
    from rnnbench.report.document import analyse
    from rnnbench.report.explanation import show_explanation as as_text
    from rnnbench.store import read_folder

    contents = [read_folder(run) for run in runs]
    for run, one in zip(runs, contents, strict=True):
        warn_of_damage(f"{run}/", one)
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
        print_json(chosen)
        return
    say(as_text(analysis, [one.run for one in contents], groups, with_claims))


def print_run(contents: "Contents", as_json: bool) -> None:
    """Print what `show` prints, and `run` at its end."""
    from rnnbench.analysis.rows import make_rows
    from rnnbench.report.terminal import show_run

    rows = make_rows(contents)
    if as_json:
        print_json(rows)
        warn_of_damage("", contents)
        return
    say(show_run(contents, rows))
