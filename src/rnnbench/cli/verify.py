"""`rnnbench verify`: prove systems, time nothing."""

from typing import Annotated

import typer

from rnnbench.cli.options import (
    DeviceOption,
    Json,
    Phases,
    Precisions,
    Seed,
    Systems,
    Threads,
    Versions,
    WorkloadFile,
    Workloads,
)


def verify(
    select: Systems = None,
    workload: Workloads = None,
    workloads_from: WorkloadFile = None,
    phase: Phases = None,
    device: DeviceOption = "auto",
    precision: Precisions = None,
    versions: Versions = "",
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
    import msgspec

    from rnnbench.cli.options import at_least, read_selection, read_workloads
    from rnnbench.cli.progress import Progress
    from rnnbench.method import make_method
    from rnnbench.plan import make_plan
    from rnnbench.report.verification import as_fields, show_verifications
    from rnnbench.verify.session import verify_plan

    at_least(jobs, 0, "--jobs")
    method = make_method(limit_seconds=limit, threads=threads, seed=seed)
    workloads = read_workloads(workload, workloads_from)
    plan = make_plan(read_selection(select, workloads, phase, device, precision, versions))
    with Progress() as progress:
        session = verify_plan(plan, method, progress, jobs=jobs, use_cache=not fresh)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(as_fields(session)), indent=2).decode())
    else:
        typer.echo(show_verifications(session))
    if any(one.verdict != "verified" for one in session.verifications):
        raise typer.Exit(1)
