"""`rnnbench graph`: the graph that an execution really builds, and seed 003's story of how."""

from pathlib import Path
from typing import Annotated

import typer

from rnnbench.cli.options import DeviceOption, Versions, WorkloadFile

FORMATS = ("text", "table", "json", "svg", "dot")


def graph(
    select: Annotated[
        list[str] | None,
        typer.Argument(metavar="SYSTEM...", help="By name or glob, e.g. pytorch/fine/eager; of several, a table."),
    ] = None,
    workload: Annotated[
        str, typer.Option("--workload", "-w", metavar="NAME", help="e.g. ptb-lm, or elman-step: seed 003's one step.")
    ] = "ce-short",
    workloads_from: WorkloadFile = None,
    full: Annotated[bool, typer.Option("--full", help="At the workload's own size, not its small version.")] = False,
    phase: Annotated[
        str, typer.Option(metavar="PHASE", help="forward or train. Default: train, where the system trains.")
    ] = "",
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"{', '.join(FORMATS)}. Default: text of one, else table.")
    ] = "",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write there instead of printing.")] = None,
    story: Annotated[
        bool, typer.Option("--story", help="A page that goes through seed 003's six statements one by one.")
    ] = False,
    reshape: Annotated[
        bool, typer.Option("--reshape", help="Also whether a new batch size or length has it built again.")
    ] = False,
    device: DeviceOption = "cpu",
    versions: Versions = "",
    limit: Annotated[float, typer.Option(metavar="SECONDS", help="For each system.")] = 600.0,
) -> None:
    """Show the graph that a system builds, taken from its framework: nodes, kinds, when it is made.

    Small versions of the workloads are taken unless --full is given: an unrolled network at full size has tens
    of thousands of nodes. What torch.compile or XLA would compile is read before code is generated.

    \b
    Examples:
      rnnbench graph pytorch/fine/eager -w elman-step
      rnnbench graph pytorch/packed/script --format svg --out script.svg
      rnnbench graph '*' -w ptb-lm --full --format table
      rnnbench graph 'jax/packed/*' --reshape
      rnnbench graph --story --out story.html
    """
    from rnnbench.cli.options import one_of, read_selection, read_workloads
    from rnnbench.cli.progress import Progress
    from rnnbench.errors import UserError
    from rnnbench.files import write_atomically
    from rnnbench.machine import make_method

    method = make_method(limit_seconds=limit, threads=1)
    if story:
        if select or form:
            raise UserError("--story has its own systems and its own format", "give it with --out FILE alone")
        from rnnbench.graph.story import make_story

        with Progress() as progress:
            page = make_story(method, progress)
        place = out or Path("story.html")
        write_atomically(place, page)
        typer.echo(f"written to {place}", err=True)
        return
    if not select:
        raise UserError("name a system, or give --story", "see `rnnbench systems`; for example pytorch/fine/eager")
    if form:
        one_of(form, FORMATS, "format")

    from rnnbench.graph.drawing import as_svg
    from rnnbench.graph.taking import take_graphs
    from rnnbench.graph.write import as_dot, as_json, as_table, as_text
    from rnnbench.plan import make_plan
    from rnnbench.verify.proofs import small_version

    workloads = tuple(one if full else small_version(one) for one in read_workloads([workload], workloads_from))
    plan = make_plan(read_selection(select, workloads, [phase] if phase else None, device, None, versions))
    form = form or ("text" if len(plan.systems) == 1 else "table")
    count = len({(case.system, case.environment) for case in plan.cases})
    if form in ("svg", "dot") and count > 1:
        raise UserError(f"{form} is for one system, but {count} match", "name one, or take table or json")
    with Progress() as progress:
        answers = take_graphs(plan, method, progress, reshape=reshape, with_text=form != "table")
    if form in ("svg", "dot"):
        if not answers[0].graphs:
            raise UserError(f"{answers[0].case.system} has no graph to draw: {answers[0].reason}", "try --format text")
        drawn = as_svg(answers[0].graphs) if form == "svg" else as_dot(answers[0].graphs)
    else:
        drawn = {"text": as_text, "table": as_table, "json": as_json}[form](answers)
    if out is None:
        typer.echo(drawn)
    else:
        write_atomically(out, drawn.encode())
        typer.echo(f"written to {out}", err=True)
    if any(taken.outcome in ("failed", "timeout") for taken in answers):
        raise typer.Exit(1)
