"""`rnnbench abilities`: what systems can do beyond the plain layer, proved by small programs."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rnnbench.cli.options import (
    DeviceOption,
    Json,
    Legend,
    Systems,
    Versions,
    at_least,
    print_json,
    run_folder,
    say,
    terminal_width,
)

if TYPE_CHECKING:
    from rnnbench.domain.ability import Entry
    from rnnbench.domain.case import Case
    from rnnbench.domain.run import Environment
    from rnnbench.domain.system import System


def abilities(
    select: Systems = None,
    ability: Annotated[
        list[str] | None, typer.Option("--ability", metavar="NAME", help="Only this one, e.g. reset. Repeatable.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", parser=run_folder, help="Try the systems of this run, and keep the entries in its folder."
        ),
    ] = None,
    known: Annotated[
        bool, typer.Option("--known", help="Try nothing: show the entries that came with rnnbench.")
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Keep the entries among those that come with rnnbench.")
    ] = False,
    reasons: Annotated[bool, typer.Option("--reasons", help="Also print why not.")] = False,
    device: DeviceOption = "auto",
    versions: Versions = "",
    limit: Annotated[float, typer.Option(metavar="SECONDS", help="Time limit for one ability of a system.")] = 300.0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Workers at once. 0: up to 4, on a GPU up to 12.")] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not use cached entries.")] = False,
    legend: Legend = False,
    as_json: Json = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print docs/abilities.md. Needs --known.")] = False,
) -> None:
    """Try what each system can do beyond the plain layer, and print the matrix.

    Ten abilities, such as a cell of one's own, resets within a sequence or gradients of gradients, each a small program
    run by the system's own execution. `yes` means that its outputs and gradients are those of the float64 reference;
    `no` has a reason (--reasons); `wrong` gives other numbers. Finished systems are cached, also after Ctrl-C.

    The exit code is 1 when something is wrong or failed.

    \b
    Examples:
      rnnbench abilities 'pytorch/*' --reasons
      rnnbench abilities 'jax/packed/*' --ability reset --ability attention
      rnnbench abilities --run last
      rnnbench abilities --known
    """
    from rnnbench.abilities import TOLERANCE, require_abilities
    from rnnbench.errors import UserError
    from rnnbench.known import known_entries
    from rnnbench.manifests import manifests
    from rnnbench.plan import select_systems
    from rnnbench.report.abilities import abilities_page, show_matrix

    chosen = require_abilities(ability or ())
    at_least(limit, 1, "--limit")
    at_least(jobs, 0, "--jobs")
    if known and (run or update or versions):
        raise UserError("--known tries nothing", "leave out --run, --update and --versions")
    if as_markdown and not known:
        raise UserError("--markdown prints what is known", "combine it with --known")
    if run and select:
        raise UserError("--run has systems of its own", "leave the systems out")
    systems = select_systems(tuple(select or ()))
    if known:
        names = [system.name for system in systems]
        entries = [one for one in known_entries() if one.system in names and one.ability in chosen]
        entries.sort(key=lambda one: names.index(one.system))
    else:
        entries = _try(systems, chosen, run, device, versions, limit, jobs, fresh)
    if update:
        _update(entries)
    if as_markdown:
        say(abilities_page(systems, entries, manifests(), TOLERANCE), nl=False)
    elif as_json:
        print_json(entries)
    else:
        say(show_matrix(entries, terminal_width(), reasons, legend))
        if not reasons and any(one.reason for one in entries):
            say("\n--reasons says why not; --legend what the columns mean")
    if not known and any(one.verdict in ("wrong", "failed") for one in entries):
        raise typer.Exit(1)


def _try(
    systems: "list[System]",
    abilities: tuple[str, ...],
    run: Path | None,
    device: str,
    versions: str,
    limit: float,
    jobs: int,
    fresh: bool,
) -> "list[Entry]":
    from rnnbench.abilities import WORKLOAD, try_abilities
    from rnnbench.cli.options import read_selection
    from rnnbench.cli.progress import Progress
    from rnnbench.domain.ability import plain_version
    from rnnbench.known import write_entries
    from rnnbench.method import make_method
    from rnnbench.plan import make_plan
    from rnnbench.store import ABILITIES_FILE, read_run

    names = [system.name for system in systems]
    if run is not None:
        stored = read_run(run)
        names = list(dict.fromkeys(case.system for case in stored.cases))
        device = next((case.device for case in stored.cases), "auto")
        created = [one for one in stored.environments.values() if not one.external]
        found = {(one.framework, plain_version(one.version)) for one in created}
        versions = ",".join(f"{framework}=={version}" for framework, version in sorted(found))
    plan = make_plan(read_selection(names, (WORKLOAD,), None, device, None, versions))
    if run is not None:
        _require_external([one for one in stored.environments.values() if one.external], plan.cases)
    with Progress() as progress:
        method = make_method(limit_seconds=limit, threads=1)
        entries = try_abilities(plan, method, progress, abilities, jobs=jobs, use_cache=not fresh)
    if run is not None:
        write_entries(run / ABILITIES_FILE, entries)
        say(f"kept in {run / ABILITIES_FILE}", err=True)
    return entries


def _require_external(environments: "list[Environment]", cases: "Iterable[Case]") -> None:
    """Versions of a user's own interpreters cannot be asked for: what is in use here must be what the run had."""
    from rnnbench.errors import UserError

    here = {case.environment for case in cases}
    for one in environments:
        if one.id not in here:
            raise UserError(
                f"the run had {one.framework} {one.version} in an interpreter of its user's, which is not in use here",
                f"rnnbench env use {one.framework} PATH",
            )


def _update(entries: "list[Entry]") -> None:
    from rnnbench.known import update_known

    for path in update_known(entries):
        say(f"written to {path}", err=True)
