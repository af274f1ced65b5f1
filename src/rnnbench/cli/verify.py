"""`rnnbench verify`: prove systems, time nothing."""

from typing import Annotated

import typer

from rnnbench.cli.options import CaseOptions, Json, Seed, Threads, at_least, print_json, with_case_options


@with_case_options
def verify(
    cases: CaseOptions,
    limit: Annotated[float, typer.Option(metavar="SECONDS", help="Per system and workload.")] = 600.0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Workers at a time. 0: one per core, at most 4.")] = 0,
    threads: Threads = 0,
    seed: Seed = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not take results kept from earlier.")] = False,
    as_json: Json = False,
) -> None:
    """Compare systems with the float64 reference on small versions of the workloads.

    Loss, logits, every gradient, and the parameters after three Adam updates, by relative L2 error.
    Exit code 1 when a system is wrong or fails.

    \b
    Examples:
      rnnbench verify 'pytorch/*'
      rnnbench verify 'pytorch/packed/*' -w bi-ctc-long --phase train --json
    """
    from rnnbench.cli.answers import show_verifications, verifications_as_fields
    from rnnbench.cli.progress import Progress
    from rnnbench.machine import make_method
    from rnnbench.plan import make_plan
    from rnnbench.verify.verifier import verify_plan

    at_least(jobs, 0, "--jobs")
    method = make_method(limit_seconds=limit, threads=threads, seed=seed)
    plan = make_plan(cases.selection())
    with Progress() as progress:
        session = verify_plan(plan, method, progress, jobs=jobs, use_cache=not fresh)
    if as_json:
        print_json(verifications_as_fields(session))
    else:
        typer.echo(show_verifications(session))
    if any(one.verdict != "verified" for one in session.verifications):
        raise typer.Exit(1)
