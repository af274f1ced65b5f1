"""`rnnbench run`: verify and time systems, store everything, print the tables."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rnnbench.cli.options import (
    CaseOptions,
    Json,
    RetryFailed,
    Seed,
    Threads,
    Trust,
    at_least,
    resumed_with_trust,
    say,
    with_case_options,
)
from rnnbench.cli.show import print_run

if TYPE_CHECKING:
    from rnnbench.store import Contents


@with_case_options
def run(
    cases: CaseOptions,
    headline: Annotated[bool, typer.Option("--headline", help="A quick comparison: headline systems only.")] = False,
    effort: Annotated[str, typer.Option(metavar="EFFORT", help="quick, standard or thorough.")] = "standard",
    protocol: Annotated[
        str, typer.Option(metavar="NAME", help="adaptive, 2018 (Braun: 100 + 400 batches) or 2019 (Carrot: 10 + 50).")
    ] = "adaptive",
    timing: Annotated[
        str, typer.Option(metavar="MODE", help="throughput, or latency: synchronise after each batch (at most 10,000).")
    ] = "throughput",
    launches: Annotated[int, typer.Option(metavar="N", help="Launches per case. 0: as the effort says.")] = 0,
    repeats: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How often a launch is repeated if the machine was busy. Default: as the effort says; with --resume, "
            "busy launches of the run are repeated so often.",
        ),
    ] = None,
    limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time limit per launch, compiling included. Default: 600.")
    ] = None,
    memory: Annotated[
        float,
        typer.Option(
            metavar="GB",
            help="Most private memory of a worker, and of each of its children; shared memory is not counted. "
            "0: 90 % of the machine.",
        ),
    ] = 0.0,
    ahead: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Workers that import and compile at once; while one is timed, the others are suspended. Default: 1.",
        ),
    ] = None,
    threads: Threads = 0,
    seed: Seed = 0,
    no_verify: Annotated[bool, typer.Option("--no-verify", help="Skip verification.")] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Then profile every case: operators, bottleneck, new shapes.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Penn Treebank text (ptb.train.txt) for ptb-lm.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The run's folder. Default: runs/<date and time>.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Resume an interrupted run.")] = None,
    retry_failed: RetryFailed = False,
    trust: Trust = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan with an estimate; run nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Verify and time systems on workloads, store everything, print the tables.

    \b
    Examples:
      rnnbench run 'pytorch/*/eager' 'pytorch/stack/*' -w ce-short --phase train
      rnnbench run --headline --effort quick
      rnnbench run 'pytorch/stack/eager' -w 'ptb-lm[batch=16]' --protocol 2019
      rnnbench run 'jax/*' 'pytorch/*' -w ptb-lm --device cuda --ahead 8
      rnnbench run --resume runs/2026-11-15-101500
      rnnbench run --resume runs/2026-11-15-101500 --retry-failed --limit 1800
      rnnbench run --resume runs/2026-11-15-101500 --repeats 2
    """
    from rnnbench.cli.progress import Progress
    from rnnbench.errors import UserError
    from rnnbench.session import resume as resume_run
    from rnnbench.session import run as run_session

    def show(progress: Progress, contents: "Contents") -> None:
        progress.close()  # the bar and the tables must not mix
        print_run(contents, as_json)

    if resume is not None:
        if dry_run:
            raise UserError("--dry-run cannot be combined with --resume", "see what is stored with `rnnbench show`")
        if cases.any_given or headline or out or profile:
            raise UserError("a resumed run keeps the options it began with", "give --resume without a selection")
        if limit is not None:
            at_least(limit, 1, "--limit")
        if ahead is not None:
            at_least(ahead, 1, "--ahead")
        if repeats is not None:
            at_least(repeats, 0, "--repeats")

        def resume_it(trusted: bool) -> None:
            with Progress() as progress, _report_interruption(resume):
                resume_run(
                    resume,
                    progress,
                    partial(show, progress),
                    retry_failed=retry_failed,
                    limit_seconds=limit,
                    ahead=ahead,
                    repeats=repeats,
                    trust=trusted,
                )

        resumed_with_trust(resume_it, trust)
        _print_location(resume, as_json)
        return
    if retry_failed or trust:
        raise UserError(f"{'--retry-failed' if retry_failed else '--trust'} needs --resume", "give the run to resume")

    from datetime import datetime

    from rnnbench.method import make_method
    from rnnbench.plan import make_plan
    from rnnbench.reference.inputs import read_treebank

    method = make_method(
        effort=effort,
        protocol=protocol,
        timing=timing,
        launches=launches,
        repeats=repeats,
        limit_seconds=600.0 if limit is None else limit,
        memory_gb=memory,
        threads=threads,
        seed=seed,
        ahead=1 if ahead is None else ahead,
        verify=not no_verify,
    )
    plan = make_plan(cases.selection(headline))
    if dry_run:
        from rnnbench.cli.answers import plan_as_json, show_plan

        say(plan_as_json(plan, method) if as_json else show_plan(plan, method))
        return
    if data is not None:
        read_treebank(data, vocabulary=10001)  # a wrong folder is reported before environments are created
    folder = out or Path("runs") / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    text = str(data.resolve()) if data else ""
    with Progress() as progress, _report_interruption(folder):
        run_session(
            plan, method, folder, progress, partial(show, progress), command=sys.argv[1:], data=text, profile=profile
        )
    _print_location(folder, as_json)


@contextmanager
def _report_interruption(folder: Path) -> Iterator[None]:
    """When the run is interrupted, print how to resume it. Before its folder exists there is nothing to resume."""
    try:
        yield
    except KeyboardInterrupt:
        if not (folder / "run.json").exists():
            raise
        say(f"\ninterrupted; all finished launches are in {folder}. Resume with:", err=True)
        say(f"  rnnbench run --resume {folder}", err=True)
        raise typer.Exit(130) from None


def _print_location(folder: Path, as_json: bool) -> None:
    say(f"\nsaved in {folder}; print it again with: rnnbench show {folder}", err=as_json)
