"""`rnnbench run`: verify and time systems, store everything, print the tables."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from rnnbench.cli.options import (
    CaseOptions,
    Json,
    Legend,
    RetryFailed,
    Seed,
    Threads,
    Trust,
    Wide,
    at_least,
    one_of,
    resumed_with_trust,
    run_folder,
    say,
    terminal_width,
    with_case_options,
)
from rnnbench.cli.show import print_run

if TYPE_CHECKING:
    from rnnbench.analysis.row import Row
    from rnnbench.store import Contents

_PASSED_ON = "rnnbench.passed_on"


class RunCommand(TyperCommand):
    """Of a run that is spread or resumed, the words after `--` are options of the cluster's sbatch."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        if any(word.partition("=")[0] in ("--on", "--resume") for word in args[:end]):
            ctx.meta[_PASSED_ON] = tuple(args[end + 1 :])
            args = args[:end]
        return super().parse_args(ctx, args)


@with_case_options
def run(
    cases: CaseOptions,
    context: typer.Context,
    headline: Annotated[bool, typer.Option("--headline", help="A quick comparison: headline systems only.")] = False,
    effort: Annotated[str, typer.Option(metavar="EFFORT", help="quick, standard or thorough.")] = "standard",
    protocol: Annotated[
        str, typer.Option(metavar="NAME", help="adaptive, 2018 (Braun: 100 + 400 batches) or 2019 (Carrot: 10 + 50).")
    ] = "adaptive",
    timing: Annotated[
        str, typer.Option(metavar="MODE", help="throughput, or latency: synchronise after each batch (at most 10,000).")
    ] = "throughput",
    launches: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Launches per case. Default: as the effort says; with --resume, rows with intervals wider than ±5 %, "
            "or with too few quiet launches, get so many.",
        ),
    ] = None,
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
    resume: Annotated[
        Path | None,
        typer.Option(metavar="RUN", parser=run_folder, help="Resume an interrupted run; last: the newest."),
    ] = None,
    retry_failed: RetryFailed = False,
    trust: Trust = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan with an estimate; run nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a run of more than an hour.")] = False,
    wide: Wide = False,
    legend: Legend = False,
    on: Annotated[
        str, typer.Option("--on", metavar="WHERE", help="local, or slurm: spread over its nodes; -- OPTIONS of sbatch.")
    ] = "local",
    detach: Annotated[bool, typer.Option("--detach", help="With slurm: submit and leave; --resume collects.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="With --resume: cancel the jobs of a spread run.")] = False,
    as_json: Json = False,
) -> None:
    """Verify and time systems on workloads, store everything, print the tables and the answer.

    The exit code is 1 when no row succeeded. A run that would take more than an hour asks first.

    \b
    Examples:
      rnnbench run 'pytorch/*/eager' 'pytorch/stack/*' -w ce-short --phase train
      rnnbench run --headline --effort quick
      rnnbench run 'pytorch/stack/eager' -w 'ptb-lm[batch=16]' --protocol 2019
      rnnbench run 'jax/*' 'pytorch/*' -w ptb-lm --device cuda --ahead 8
      rnnbench run --resume last
      rnnbench run --resume runs/2026-11-15-101500 --retry-failed --limit 1800
      rnnbench run --resume runs/2026-11-15-101500 --repeats 2
      rnnbench run --resume last --launches 8
      rnnbench run 'pytorch/*' --device cuda --on slurm --detach -- --partition=gpu --time=4:00:00
      rnnbench run --resume runs/2026-11-15-101500 --cancel
    """
    from rnnbench.cli.progress import Progress
    from rnnbench.errors import UserError
    from rnnbench.session import MoreLaunches
    from rnnbench.session import resume as resume_run
    from rnnbench.session import run as run_session
    from rnnbench.spread.folder import is_spread
    from rnnbench.store import read_run

    def end(contents: "Contents", folder: Path) -> None:
        end_of_run(print_run(contents, as_json, wide, legend), folder, as_json)

    passed_on: tuple[str, ...] = context.meta.get(_PASSED_ON, ())
    is_local = one_of(on, ("local", "slurm"), "place to run") == "local"
    if resume is not None:
        if dry_run:
            raise UserError("--dry-run cannot be combined with --resume", "see what is stored with `rnnbench show`")
        if cases.any_given or headline or out or profile or not is_local:
            raise UserError("a resumed run keeps the options it began with", "give --resume without a selection")
        for given, least, option in (
            (limit, 1, "--limit"),
            (ahead, 1, "--ahead"),
            (repeats, 0, "--repeats"),
            (launches, 1, "--launches"),
        ):
            if given is not None:
                at_least(given, least, option)
        if is_spread(resume):
            from rnnbench.cli import spread
            from rnnbench.spread.folder import Resuming

            if cancel:
                spread.cancel(resume)
                return
            if launches is not None:
                raise UserError(
                    "--launches cannot be combined with --resume of a spread run", "give them when a run begins"
                )
            resuming = Resuming(retry_failed=retry_failed, limit_seconds=limit, ahead=ahead, repeats=repeats)
            spread.resume(resume, options=passed_on, resuming=resuming, detach=detach, as_json=as_json)
            return
        if detach or cancel or passed_on:
            raise UserError(f"{resume} is not spread over a cluster", "resume it without --detach, --cancel and `--`")
        if read_run(resume).command[:1] == ("profile",):
            raise UserError(f"{resume} was only to be profiled", f"rnnbench profile --resume {resume}")

        from rnnbench.analysis.stability import unsettled_cases

        def resume_it(trusted: bool) -> None:
            changed: dict[str, Any] = {"limit_seconds": limit, "ahead": ahead, "repeats": repeats, "trust": trusted}
            with Progress() as progress, report_interruption(resume):
                contents = resume_run(resume, progress, retry_failed=retry_failed, **changed)
                if launches is not None and (unsettled := unsettled_cases(contents)):
                    contents = resume_run(resume, progress, more=MoreLaunches(unsettled, launches), **changed)
            end(contents, resume)

        resumed_with_trust(resume_it, trust)
        return
    if retry_failed or trust:
        raise UserError(f"{'--retry-failed' if retry_failed else '--trust'} needs --resume", "give the run to resume")
    if cancel:
        raise UserError("--cancel needs --resume", "give the run whose jobs are to be cancelled")
    if is_local and (detach or passed_on):
        raise UserError("--detach and options after `--` are for a cluster", "give --on slurm")

    from datetime import datetime

    from rnnbench.cli.answers import plan_as_json, require_consent, show_plan
    from rnnbench.last_run import RUNS, require_other_name
    from rnnbench.method import make_method
    from rnnbench.plan import make_plan, within_memory
    from rnnbench.reference.inputs import read_treebank
    from rnnbench.store import require_usable

    options: dict[str, Any] = {
        "effort": effort,
        "protocol": protocol,
        "timing": timing,
        "launches": 0 if launches is None else launches,
        "repeats": repeats,
        "limit_seconds": 600.0 if limit is None else limit,
        "memory_gb": memory,
        "threads": threads,
        "seed": seed,
        "ahead": 1 if ahead is None else ahead,
        "verify": not no_verify,
    }
    folder = out or RUNS / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    require_other_name(folder)
    text = str(data.resolve()) if data else ""
    if data is not None:
        read_treebank(data, vocabulary=10001)  # a wrong folder is reported before environments are created
    if not is_local:
        from rnnbench.cli import spread
        from rnnbench.spread.folder import Request

        if dry_run:
            raise UserError("--dry-run cannot be combined with --on slurm", "the plan is made on a node, not here")
        selection = cases.selection(headline)
        words = tuple(word.encode("utf-8", "replace").decode() for word in sys.argv[1:])  # a path may be any bytes
        request = Request(selection=selection, method=options, command=words, data=text, profile=profile)
        spread.begin(request, passed_on, folder, detach=detach, as_json=as_json)
        return
    method = make_method(**options)
    plan = within_memory(make_plan(cases.selection(headline)), method)
    if dry_run:
        say(plan_as_json(plan, method) if as_json else show_plan(plan, method, None if wide else terminal_width()))
        return
    require_usable(folder)
    require_consent(plan, method, yes)
    with Progress() as progress, report_interruption(folder):
        contents = run_session(plan, method, folder, progress, command=sys.argv[1:], data=text, profile=profile)
    end(contents, folder)


@contextmanager
def report_interruption(folder: Path, more: str = "") -> Iterator[None]:
    """When the run is interrupted, print how to resume it. Before its folder exists there is nothing to resume."""
    try:
        yield
    except KeyboardInterrupt:
        if not (folder / "run.json").exists():
            raise
        say(f"\ninterrupted; all finished launches are in {folder}. Resume with:", err=True)
        say(f"  rnnbench run --resume {folder}{more}", err=True)
        raise typer.Exit(130) from None


def end_of_run(rows: "list[Row]", folder: Path, as_json: bool) -> None:
    """Say where the run is and what to do with it; the exit code is 1 when it has nothing to show."""
    from rnnbench.last_run import short_name
    from rnnbench.report.answer import next_commands, succeeded

    name = short_name(folder)
    say(f"\nsaved in {folder}; print it again with: rnnbench show {shlex.quote(name)}", err=as_json)
    if not succeeded(rows):
        say("no row succeeded: the reasons are in the tables", err=True)
        raise typer.Exit(1)
    if not as_json:
        say(f"\n{next_commands(rows, name)}")
