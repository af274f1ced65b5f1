"""`rnnbench profile`: explain why rows are slow."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rnnbench.cli.options import (
    CaseOptions,
    Legend,
    RetryFailed,
    Seed,
    Threads,
    Trust,
    at_least,
    one_of,
    resumed_with_trust,
    run_folder,
    say,
    terminal_width,
    with_case_options,
)

if TYPE_CHECKING:
    from rnnbench.domain.case import Method
    from rnnbench.plan import Selection
    from rnnbench.session import ProfilePart

FORMATS = ("text", "md", "json")


@with_case_options
def profile(
    cases: CaseOptions,
    small: Annotated[bool, typer.Option("--small", help="Use the small workloads that `verify` uses.")] = False,
    only: Annotated[
        str, typer.Option(metavar="PART", help="operators: only the profiler. shapes: only new shapes.")
    ] = "",
    limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time limit per launch, compiling included. Default: 300.")
    ] = None,
    threads: Threads = 0,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where to store. Default: profiles/<date and time>.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            parser=run_folder,
            help="Resume an interrupted profile, or profile the cases of a run; last: the newest run.",
        ),
    ] = None,
    retry_failed: RetryFailed = False,
    trust: Trust = False,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="What is printed: text, md or json.")
    ] = "text",
    legend: Legend = False,
) -> None:
    """Explain why rows are slow: the operators of a batch, where its time goes, and what a new shape costs.

    Up to six systems are shown side by side, each with a line of advice. The rate of the matrix products is compared
    with the machine's limit, which is measured first. ~ marks what was profiled while the machine was busy.

    Each case is launched twice, and neither launch is a measurement. One runs a few batches under the framework's own
    profiler and shows operators or kernels per batch, the time in which none runs, the bottleneck in one sentence,
    and a trace for https://ui.perfetto.dev. The other gives a warm program a new batch size and a new length, and
    shows what was built again and how long that took. After Ctrl-C, finished profiles are kept.

    \b
    Examples:
      rnnbench profile pytorch/fine/eager -w ptb-lm --phase train
      rnnbench profile pytorch/fine/eager pytorch/stack/eager -w ptb-lm --phase train
      rnnbench profile '*' -w ptb-lm --format md --out profiles/ptb-lm
      rnnbench profile '*/graph*' -w ce-short --only shapes --small
      rnnbench profile --resume profiles/ptb-lm
    """
    from rnnbench.errors import UserError
    from rnnbench.method import make_method
    from rnnbench.session import PROFILE_PARTS

    one_of(form, FORMATS, "format")
    parts = (
        [part for part in PROFILE_PARTS if part == one_of(only, PROFILE_PARTS, "part")] if only else list(PROFILE_PARTS)
    )
    if limit is not None:
        at_least(limit, 1, "--limit")
    if resume is not None:
        if cases.any_given or small or out:
            raise UserError("--resume profiles the cases of its folder", "give it without a selection")

        def resume_it(trusted: bool) -> None:
            _profile_folder(resume, parts, form, legend, retry_failed, limit, resumed=True, trust=trusted)

        resumed_with_trust(resume_it, trust)
        return
    if retry_failed or trust:
        raise UserError(
            f"{'--retry-failed' if retry_failed else '--trust'} needs --resume", "give the folder to resume"
        )
    seconds = 300.0 if limit is None else limit
    method = make_method(limit_seconds=seconds, threads=threads, seed=seed, verify=False)
    selection = cases.selection()
    folder = _begin_profile(_on_small_workloads(selection) if small else selection, method, out)
    _profile_folder(folder, parts, form, legend)


def _on_small_workloads(selection: "Selection") -> "Selection":
    """The selection on the small versions of its workloads."""
    import msgspec

    from rnnbench.plan import make_plan
    from rnnbench.verify.proofs import small_version

    reduced = {one.name: one for one in map(small_version, make_plan(selection).workloads.values())}
    return msgspec.structs.replace(selection, workloads=tuple(reduced.values()))


def _begin_profile(selection: "Selection", method: "Method", out: Path | None) -> Path:
    """Begin a run whose cases are only profiled, and return its folder."""
    from datetime import datetime

    from rnnbench.cli.progress import Progress
    from rnnbench.plan import make_plan
    from rnnbench.session import begin_run

    folder = out or Path("profiles") / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    with Progress() as progress:
        begin_run(make_plan(selection), method, folder, progress, command=sys.argv[1:], profile=True)
    return folder


def _profile_folder(
    folder: Path,
    parts: "list[ProfilePart]",
    form: str,
    legend: bool,
    retry_failed: bool = False,
    limit_seconds: float | None = None,
    resumed: bool = False,
    trust: bool = False,
) -> None:
    from rnnbench.cli.progress import Progress
    from rnnbench.files import write_atomically
    from rnnbench.report.profiles import encode, profiles_as_markdown, show_profiles
    from rnnbench.session import profile_run
    from rnnbench.store import read_folder

    interrupted = False
    try:
        with Progress() as progress:
            profile_run(
                folder,
                progress,
                parts=parts,
                retry_failed=retry_failed,
                limit_seconds=limit_seconds,
                resumed=resumed,
                trust=trust,
            )
    except KeyboardInterrupt:
        interrupted = True
    contents = read_folder(folder)
    markdown = profiles_as_markdown(contents)
    write_atomically(folder / "profile.md", markdown.encode())
    if form == "text":
        say(show_profiles(contents, terminal_width(), legend))
    else:
        say(markdown if form == "md" else encode(contents))
    for line in contents.damaged:
        say(f"rnnbench: {line}: skipped", err=True)
    if interrupted:
        say(f"\ninterrupted; finished profiles are in {folder}. Resume with:", err=True)
        say(f"  rnnbench profile --resume {folder}", err=True)
        raise typer.Exit(130)
    say(f"\nsaved in {folder}: profiles.jsonl, profile.md, traces/", err=True)
