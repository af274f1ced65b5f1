"""`rnnbench run`: measure."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rnnbench.cli.options import (
    DeviceOption,
    Json,
    Phases,
    Precisions,
    RetryFailed,
    Seed,
    Systems,
    Threads,
    Versions,
    WorkloadFile,
    Workloads,
    at_least,
)


def run(
    select: Systems = None,
    workload: Workloads = None,
    workloads_from: WorkloadFile = None,
    phase: Phases = None,
    device: DeviceOption = "auto",
    precision: Precisions = None,
    versions: Versions = "",
    headline: Annotated[bool, typer.Option("--headline", help="The quick comparison: headline systems only.")] = False,
    effort: Annotated[str, typer.Option(metavar="EFFORT", help="quick, standard or thorough.")] = "standard",
    protocol: Annotated[
        str, typer.Option(metavar="NAME", help="adaptive, or the seeds': 2018 (100 + 400 batches), 2019 (10 + 50).")
    ] = "adaptive",
    timing: Annotated[
        str, typer.Option(metavar="MODE", help="throughput, or latency: wait after each batch.")
    ] = "throughput",
    launches: Annotated[int, typer.Option(metavar="N", help="Processes per case. 0: as the effort says.")] = 0,
    limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Per launch, compiling included. Default: 600.")
    ] = None,
    memory: Annotated[
        float, typer.Option(metavar="GB", help="Most a worker may allocate. 0: 90 % of the machine.")
    ] = 0.0,
    ahead: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Workers that import and compile at once; all but one stand still while it is timed. Default: 1.",
        ),
    ] = None,
    threads: Threads = 0,
    seed: Seed = 0,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Leave rows unverified.")] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Afterwards profile every case: operators, bottleneck, new shapes.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Penn Treebank text (ptb.train.txt) for ptb-lm.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where to save. Default: runs/<date and time>.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Go on with an interrupted run.")] = None,
    retry_failed: RetryFailed = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan with an estimate; run nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Verify and time systems on workloads, save everything, print the tables.

    \b
    Examples:
      rnnbench run 'pytorch/*/eager' 'pytorch/stack/*' -w ce-short --phase train
      rnnbench run --headline --effort quick
      rnnbench run 'pytorch/stack/eager' -w 'ptb-lm[batch=16]' --protocol 2019
      rnnbench run 'jax/*' 'pytorch/*' -w ptb-lm --device cuda --ahead 8
      rnnbench run --resume runs/2026-11-15-101500
      rnnbench run --resume runs/2026-11-15-101500 --retry-failed --limit 1800
    """
    from rnnbench.errors import UserError

    if resume is not None:
        if dry_run:
            raise UserError("--dry-run does not go with --resume", "see what is there with `rnnbench show`")
        if select or workload or phase or precision or versions or headline or out or profile:
            raise UserError("a resumed run does what it was begun with", "give --resume with no selection")
        if limit is not None:
            at_least(limit, 1, "--limit")
        if ahead is not None:
            at_least(ahead, 1, "--ahead")
        _measure(resume, as_json, retry_failed=retry_failed, limit_seconds=limit, ahead=ahead)
        return
    if retry_failed:
        raise UserError("--retry-failed goes with --resume", "give the run to go on with")

    from datetime import datetime

    from rnnbench.cli.options import read_selection, read_workloads
    from rnnbench.method import make_method
    from rnnbench.plan import make_plan

    method = make_method(
        effort=effort,
        protocol=protocol,
        timing=timing,
        launches=launches,
        limit_seconds=600.0 if limit is None else limit,
        memory_gb=memory,
        threads=threads,
        seed=seed,
        ahead=1 if ahead is None else ahead,
        verify=not no_verify,
    )
    workloads = read_workloads(workload, workloads_from)
    plan = make_plan(read_selection(select, workloads, phase, device, precision, versions, headline))
    if dry_run:
        from rnnbench.report.plan import plan_as_json, show_plan

        typer.echo(plan_as_json(plan, method) if as_json else show_plan(plan, method))
        return
    if data is not None:
        from rnnbench.reference.treebank import read_treebank

        read_treebank(data, vocabulary=10001)  # a wrong folder is better told now than after the environments are made

    from rnnbench.cli.progress import Progress
    from rnnbench.launch.runner import begin_run

    folder = out or Path("runs") / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    with Progress() as progress:
        text = str(data.resolve()) if data else ""
        begin_run(plan, method, folder, progress, command=sys.argv[1:], data=text, profile=profile)
    _measure(folder, as_json)


def _measure(folder: Path, as_json: bool, **options: Any) -> None:
    from rnnbench.cli.progress import Progress
    from rnnbench.cli.show import show
    from rnnbench.launch.runner import continue_run

    try:
        with Progress() as progress:
            continue_run(folder, progress, **options)
    except KeyboardInterrupt:
        typer.echo(f"\ninterrupted; all finished launches are in {folder}. Go on with:", err=True)
        typer.echo(f"  rnnbench run --resume {folder}", err=True)
        raise typer.Exit(130) from None
    show(folder, as_json)
    typer.echo(f"\nsaved in {folder}; print it again with: rnnbench show {folder}", err=as_json)
