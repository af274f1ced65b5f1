"""`rnnbench graph`: the graph that an execution builds, and a page that shows step by step how it is built."""

from pathlib import Path
from typing import Annotated

import typer

from rnnbench.cli.options import DeviceOption, Versions, WorkloadFile, say

FORMATS = ("text", "table", "json", "svg", "dot")


def graph(
    select: Annotated[
        list[str] | None,
        typer.Argument(metavar="SYSTEM...", help="By name or glob, e.g. pytorch/fine/eager. Several: a table."),
    ] = None,
    workload: Annotated[
        str,
        typer.Option("--workload", "-w", metavar="NAME", help="e.g. ptb-lm, or elman-step: one step (Lazarus 2019)."),
    ] = "ce-short",
    workloads_from: WorkloadFile = None,
    full: Annotated[bool, typer.Option("--full", help="At the workload's full size, not its small version.")] = False,
    phase: Annotated[
        str, typer.Option(metavar="PHASE", help="forward or train. Default: train, if the system trains.")
    ] = "",
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"{', '.join(FORMATS)}. Default: text if one, else table.")
    ] = "",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file instead of printing.")] = None,
    story: Annotated[
        bool, typer.Option("--story", help="A page that shows the six statements of Lazarus (2019) one by one.")
    ] = False,
    reshape: Annotated[
        bool, typer.Option("--reshape", help="Also show whether a new batch size or length rebuilds the graph.")
    ] = False,
    device: DeviceOption = "cpu",
    versions: Versions = "",
    limit: Annotated[float, typer.Option(metavar="SECONDS", help="Time limit per system.")] = 600.0,
) -> None:
    """Show the graph that a system builds, as its framework reports it: nodes, kinds, when it is built.

    Small versions of the workloads are used unless --full is given: an unrolled network at full size has tens
    of thousands of nodes. The graphs of torch.compile and XLA are those before code is generated.

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
    from rnnbench.files import require_writable, write_atomically
    from rnnbench.method import make_method

    method = make_method(limit_seconds=limit, threads=1)
    if out is not None:
        require_writable(out.parent)  # before minutes are spent on the graph
    if story:
        if select or form:
            raise UserError("--story has fixed systems and a fixed format", "combine it with --out FILE only")
        from rnnbench.graph.story import make_story

        with Progress() as progress:
            page = make_story(method, progress)
        path = out or Path("story.html")
        write_atomically(path, page)
        say(f"written to {path}", err=True)
        return
    if not select:
        raise UserError("name a system, or give --story", "see `rnnbench systems`; for example pytorch/fine/eager")
    if form:
        one_of(form, FORMATS, "format")

    from rnnbench.graph.capture import capture_graphs
    from rnnbench.graph.drawing import as_svg
    from rnnbench.graph.write import as_dot, as_json, as_table, as_text
    from rnnbench.plan import make_plan, within_memory
    from rnnbench.verify.proofs import small_version

    workloads = tuple(one if full else small_version(one) for one in read_workloads([workload], workloads_from))
    selection = read_selection(select, workloads, [phase] if phase else None, device, None, versions)
    plan = within_memory(make_plan(selection), method)
    form = form or ("text" if len(plan.systems) == 1 else "table")
    count = len({(case.system, case.environment) for case in plan.cases})
    if form in ("svg", "dot") and count > 1:
        raise UserError(f"{form} is for one system, but {count} match", "name one, or use --format table or json")
    with Progress() as progress:
        answers = capture_graphs(plan, method, progress, reshape=reshape, with_text=form != "table")
    if form in ("svg", "dot"):
        if not answers[0].graphs:
            raise UserError(f"{answers[0].case.system} has no graph to draw: {answers[0].reason}", "try --format text")
        drawn = as_svg(answers[0].graphs) if form == "svg" else as_dot(answers[0].graphs)
    else:
        drawn = {"text": as_text, "table": as_table, "json": as_json}[form](answers)
    if out is None:
        say(drawn)
    else:
        write_atomically(out, drawn.encode())
        say(f"written to {out}", err=True)
    if any(captured.outcome in ("failed", "timeout") for captured in answers):
        raise typer.Exit(1)
