"""`rnnbench systems` and `rnnbench workloads`: list what can be run."""

from typing import Annotated

import typer

from rnnbench.cli.options import Json, Systems, Wide, WorkloadFile, print_json, say, say_table


def systems(
    select: Systems = None,
    wide: Wide = False,
    as_json: Json = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print docs/systems.md: published labels, support, reasons.")
    ] = False,
) -> None:
    """List the systems: framework/granularity/execution.

    \b
    Examples:
      rnnbench systems
      rnnbench systems 'pytorch/packed/*' --json
      rnnbench systems --markdown > docs/systems.md
    """
    from rnnbench.errors import UserError
    from rnnbench.manifests import manifests
    from rnnbench.plan import select_systems
    from rnnbench.report.systems_page import offered_devices, systems_page
    from rnnbench.text import Column

    if as_json and as_markdown:
        raise UserError("--json and --markdown cannot be combined", "give one of them")
    chosen = select_systems(tuple(select or ()))
    devices = {system.name: offered_devices(manifests()[system.framework], system) for system in chosen}
    if as_markdown:
        say(systems_page(chosen, manifests()), nl=False)
        return
    if as_json:
        fields = [
            {
                "name": system.name,
                "framework": system.framework,
                "granularity": system.granularity,
                "execution": system.execution,
                "phases": system.phases,
                "devices": devices[system.name],
                "precisions": system.precisions,
                "biases": system.biases,
                "headline": system.headline,
                "description": system.description,
                "seed_label": system.seed,
            }
            for system in chosen
        ]
        print_json(fields)
        return
    rows = [
        [system.name, ", ".join(system.phases), ", ".join(devices[system.name]), system.description]
        for system in chosen
    ]
    columns = [Column("system"), Column("phases", drop=2), Column("devices", drop=1), Column("what it is")]
    say_table(columns, rows, wide)


def workloads(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="e.g. ce-short or 'ptb-lm[batch=16]'. Default: all.")
    ] = None,
    file: WorkloadFile = None,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """List the workloads with their parameters and the work in one batch.

    \b
    Examples:
      rnnbench workloads
      rnnbench workloads 'ptb-lm[batch=16,steps=20]' --json
    """
    import msgspec

    from rnnbench.cli.options import read_workloads
    from rnnbench.domain.catalog import CATALOG
    from rnnbench.domain.workload import compulsory_bytes, flops, parameter_count
    from rnnbench.text import Column
    from rnnbench.units import figures, size

    chosen = read_workloads(names, file) if names else (*CATALOG.values(), *read_workloads(None, file))
    if as_json:
        fields = [
            {
                **msgspec.structs.asdict(one),
                "parameter_count": parameter_count(one),
                "flops": {phase: flops(one, phase) for phase in ("forward", "train")},
                "bytes": {phase: compulsory_bytes(one, phase) for phase in ("forward", "train")},
            }
            for one in chosen
        ]
        print_json(fields)
        return
    columns = [
        Column("workload"), Column("batch × steps × input"), Column("stack"), Column("head", drop=2),
        Column("loss", drop=1), Column("parameters", right=True, drop=4), Column("GFLOP forward", right=True, drop=3),
        Column("train", right=True, drop=3), Column("bytes train", right=True, drop=5), Column("from", drop=6),
    ]  # fmt: skip
    rows = []
    for one in chosen:
        width = f"ids of {one.vocabulary}, embedding {one.embedding}" if one.vocabulary else str(one.features)
        lengths = f" (lengths {one.shortest}…{one.steps})" if one.variable_length else ""
        rows.append(
            [
                one.name,
                f"{one.batch} × {one.steps} × {width}{lengths}",
                f"one tanh step, {one.hidden} units"
                if one.one_step
                else f"{one.layers} × {one.hidden}{' bidirectional' if one.bidirectional else ''}",
                "none" if one.one_step else f"{one.classes}{' + bias' if one.head_bias else ''}, {one.head_on}",
                f"{one.loss}{f', {one.labels} labels' if one.labels else ''}",
                f"{parameter_count(one):,}",
                figures(flops(one, "forward") / 1e9),
                figures(flops(one, "train") / 1e9),
                size(compulsory_bytes(one, "train")),
                one.origin,
            ]
        )
    say_table(columns, rows, wide)
