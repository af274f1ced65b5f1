"""`rnnbench systems`: who can compute a workload."""

from typing import Annotated

import typer

from rnnbench.cli.options import Json, Systems


def systems(
    select: Systems = None,
    as_json: Json = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a page with seeds, support and reasons: docs/systems.md.")
    ] = False,
) -> None:
    """List the systems: framework/granularity/execution.

    \b
    Examples:
      rnnbench systems
      rnnbench systems 'pytorch/packed/*' --json
      rnnbench systems --markdown > docs/systems.md
    """
    import msgspec

    from rnnbench.errors import UserError
    from rnnbench.manifests import manifests
    from rnnbench.plan import select_systems
    from rnnbench.report.systems_page import systems_page
    from rnnbench.report.table import Column, render

    if as_json and as_markdown:
        raise UserError("--json and --markdown are two forms of the same", "take one of them")
    chosen = select_systems(tuple(select or ()))
    if as_markdown:
        typer.echo(systems_page(chosen, manifests()), nl=False)
        return
    if as_json:
        fields = [
            {
                "name": system.name,
                "framework": system.framework,
                "granularity": system.granularity,
                "execution": system.execution,
                "phases": system.phases,
                "devices": system.devices,
                "precisions": system.precisions,
                "biases": system.biases,
                "headline": system.headline,
                "description": system.description,
                "seed_label": system.seed,
            }
            for system in chosen
        ]
        typer.echo(msgspec.json.format(msgspec.json.encode(fields), indent=2).decode())
        return
    rows = [[system.name, ", ".join(system.phases), ", ".join(system.devices), system.description] for system in chosen]
    columns = [Column("system"), Column("phases"), Column("devices"), Column("what it is")]
    typer.echo(render(columns, rows))
