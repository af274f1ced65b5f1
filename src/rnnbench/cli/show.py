"""`rnnbench show`, `check` and `explain`: what the numbers of stored runs are, and what to do with them."""

from typing import TYPE_CHECKING, Annotated

import typer

from rnnbench.cli.options import (
    Json,
    Legend,
    RunFolder,
    RunFolders,
    Wide,
    print_json,
    say,
    terminal_width,
    warn_of_damage,
)

if TYPE_CHECKING:
    from rnnbench.analysis.row import Row
    from rnnbench.store import Contents


def show(
    run: RunFolder,
    wide: Wide = False,
    legend: Legend = False,
    as_json: Json = False,
) -> None:
    """Print a run: one table per workload, phase, device and precision, then its answer.

    In a terminal, columns that do not fit are dropped, the least important first.

    \b
    Examples:
      rnnbench show last
      rnnbench show runs/2026-11-15-101500 --wide --legend
      rnnbench show runs/2026-11-15-101500 --json > rows.json
    """
    from rnnbench.store import read_folder

    print_run(read_folder(run), as_json, wide, legend)


def check(
    run: RunFolder,
    as_json: Json = False,
) -> None:
    """Judge whether a run is stable enough to publish, and suggest what to do where it is not.

    Checks completeness, verification, also at full size, failures, rows above the machine's limit, number of
    launches, launches on a busy machine, wide intervals, rows that are not steady, drift within launches and
    over rounds, the processor's speed over the run, other load, nodes that differ and the source. The exit code
    is 1 when there is a problem; a run with warnings alone is fit to publish.

    \b
    Examples:
      rnnbench check last
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
    runs: RunFolders,
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", "-w", metavar="NAME", help="Only these workloads. Repeatable."),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Every sentence, with tables: gap, recovered, limit, break-even.")
    ] = False,
    wide: Wide = False,
    claims: Annotated[
        bool, typer.Option("--claims", help="The conclusions of Carrot (2019) about ptb-lm, tested on these runs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what to do, in ten lines: which row to use, what your own loop costs, and how to make it faster.

    The sentences use only verified rows and their intervals; nothing is measured. The claims are those of Carrot
    (2019), https://github.com/lcy-seso/Carrot. To test those about both devices, give a CPU run and a GPU run.

    \b
    Examples:
      rnnbench explain last
      rnnbench explain runs/2026-11-15-101500 --details
      rnnbench explain runs/cpu runs/gpu -w ptb-lm --claims
      rnnbench explain last --json > analysis.json
    """
    import msgspec

    from rnnbench.errors import UserError
    from rnnbench.published.claims import WORKLOAD
    from rnnbench.published.sections import claims_as_text
    from rnnbench.report.document import analyse
    from rnnbench.report.explanation import show_advice, show_details
    from rnnbench.report.own_cell import show_own_cell
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
    if as_json:
        about_claims = not workload or any(shapes[name].id == WORKLOAD for name in wanted)
        print_json(
            msgspec.structs.replace(analysis, groups=tuple(groups), claims=analysis.claims if about_claims else ())
        )
        return
    if details:
        say(show_details(analysis, [one.run for one in contents], groups, None if wide else terminal_width()))
    elif not claims:
        say(show_advice(analysis, groups, terminal_width()))
        for one in contents:
            if own := show_own_cell(one, terminal_width()):
                say(f"\n{own}")
        say("--details: every sentence, with tables; --claims: the conclusions of 2019, tested here")
    if claims:
        say(("\n" if details else "") + claims_as_text(analysis.claims))


def print_run(contents: "Contents", as_json: bool, wide: bool = False, legend: bool = False) -> "list[Row]":
    """Print what `show` prints, and `run` near its end; returns the rows."""
    from rnnbench.analysis.rows import make_rows
    from rnnbench.report.answer import show_answer
    from rnnbench.report.own_cell import show_own_cell
    from rnnbench.report.terminal import show_run

    rows = make_rows(contents)
    if as_json:
        print_json(rows)
        warn_of_damage("", contents)
        return rows
    width = terminal_width()
    say(show_run(contents, rows, None if wide else width, legend))
    say(f"\n{show_answer(rows, width)}")
    if own := show_own_cell(contents, width):
        say(f"\n{own}")
    return rows
