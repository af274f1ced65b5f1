"""`rnnbench verify`: compare systems with the reference, without timing them."""

from typing import Annotated

import typer

from rnnbench.cli.options import (
    CaseOptions,
    Json,
    Seed,
    Threads,
    Wide,
    at_least,
    print_json,
    say,
    terminal_width,
    with_case_options,
)


@with_case_options
def verify(
    cases: CaseOptions,
    limit: Annotated[float, typer.Option(metavar="SECONDS", help="Time limit per system and workload.")] = 600.0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Workers at once. 0: up to 4, on a GPU up to 12.")] = 0,
    threads: Threads = 0,
    seed: Seed = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not use cached results.")] = False,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Compare systems with the float64 reference on small versions of the workloads.

    Compared by relative L2 error: logits, loss, every gradient, and the parameters after three Adam updates.
    The exit code is 1 when a system is wrong or fails.

    \b
    Examples:
      rnnbench verify 'pytorch/*'
      rnnbench verify 'pytorch/packed/*' -w bi-ctc-long --phase train --json
    """
    from rnnbench.cli.answers import show_verifications, verifications_as_fields
    from rnnbench.cli.progress import Progress
    from rnnbench.method import make_method
    from rnnbench.plan import make_plan
    from rnnbench.verify.verifier import verify_plan

    at_least(jobs, 0, "--jobs")
    method = make_method(limit_seconds=limit, threads=threads, seed=seed)
    plan = make_plan(cases.selection())
    with Progress() as progress:
        verified = verify_plan(plan, method, progress, jobs=jobs, use_cache=not fresh)
    if as_json:
        print_json(verifications_as_fields(verified))
    else:
        say(show_verifications(verified, None if wide else terminal_width()))
    if any(one.verdict != "verified" for one in verified.verifications):
        raise typer.Exit(1)
