"""`rnnbench env`: create, list, check and remove the environments that run the frameworks."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from rnnbench.cli.options import print_json, say

app = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Create, list and check the frameworks' environments."
)


@app.command("list")
def list_(
    json: Annotated[bool, typer.Option("--json", help="Print everything known, distributions included.")] = False,
) -> None:
    """List the environments that are ready.

    \b
    Example:
      rnnbench env list --json
    """
    from rnnbench.environments.registry import list_environments

    environments = list_environments()
    if json:
        print_json(environments)
    elif not environments:
        say("no environments yet; create one with `rnnbench env create pytorch`")
    else:
        from rnnbench.text import Column, render_table

        columns = [Column(heading) for heading in ("environment", "version", "Python", "interpreter")]
        say(render_table(columns, [(each.id, each.version, each.python_version, each.python) for each in environments]))


@app.command()
def create(
    specs: Annotated[list[str], typer.Argument(metavar="SPEC...", help="pytorch, or pytorch==2.9.1")],
    device: Annotated[
        Literal["cpu", "cuda"], typer.Option(help="Which build of the framework, where they differ.")
    ] = "cpu",
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the environment and create it again.")] = False,
) -> None:
    """Create environments, several at once. Those that exist already are kept.

    When one fails, the others are still created, and the exit code is 2. If the manifest has changed since an
    environment was created, that is reported; --fresh creates it again.

    \b
    Examples:
      rnnbench env create pytorch
      rnnbench env create pytorch==1.0.0 pytorch==1.3.1 pytorch==1.12.1
      rnnbench env create --fresh pytorch==1.0.0
      PIP_INDEX_URL=https://mirror.example/simple rnnbench env create pytorch
    """
    from functools import partial

    from rnnbench.cli.progress import Progress
    from rnnbench.environments.create import Passing, make_all
    from rnnbench.environments.create import create as create_environment
    from rnnbench.environments.external import external_interpreters
    from rnnbench.environments.spec import parse_spec
    from rnnbench.errors import UserError

    # All are parsed before the first is created: a typing error should not appear after ten minutes.
    wanted = list({spec.id: spec for spec in (parse_spec(text, device) for text in specs)}.values())
    with Progress() as progress:

        def report(line: str) -> None:
            if isinstance(line, Passing):
                progress.preparing(line)
            else:
                say(line)

        made = make_all(wanted, partial(create_environment, fresh=fresh), report)
    for spec, environment in zip(wanted, made, strict=True):
        if isinstance(environment, UserError):
            continue
        say(environment.python)
        external = external_interpreters().get(spec.framework)
        if external is not None:
            say(f"note: {external.python} takes precedence until `rnnbench env remove {external.id}`")
    failed = [error for error in made if isinstance(error, UserError)]
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise UserError(f"{len(failed)} environments could not be created", "the reasons are above, and in their logs")


@app.command()
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="As `rnnbench env list` prints them.")],
) -> None:
    """Delete created environments; stop using external interpreters, which are not changed.

    \b
    Example:
      rnnbench env remove pytorch-2.9.1
    """
    from rnnbench.environments.registry import remove as remove_environment

    for name in names:
        say(remove_environment(name))


@app.command()
def use(
    framework: Annotated[str, typer.Argument(help="pytorch, or pytorch==2.11.0 to require a version")],
    path: Annotated[Path, typer.Argument(help="A Python interpreter, or the folder of an environment.")],
) -> None:
    """Use an existing interpreter for a framework: a cluster's, a container's or your own.

    \b
    Examples:
      rnnbench env use pytorch ~/venvs/nightly
      rnnbench env use pytorch==2.11.0 /opt/torch/bin/python
    """
    from rnnbench.environments.external import use_interpreter

    environment = use_interpreter(framework, path)
    say(f"{environment.id}: Python {environment.python_version}, {environment.python}")


@app.command()
def doctor(
    start: Annotated[
        bool, typer.Option("--start", help="Also start every framework as a launch would. Takes seconds each.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check interpreters, environments, compilers and disk. The exit code is 1 if there is a problem.

    \b
    Examples:
      rnnbench env doctor
      rnnbench env doctor --start
    """
    from rnnbench.environments.doctor import diagnose
    from rnnbench.launch.launcher import start_failure

    findings = diagnose(start_failure if start else None)
    if json:
        print_json(findings)
    else:
        for finding in findings:
            say(f"{finding.level:8} {finding.what}")
            for line in finding.hint.splitlines():
                say(f"{'':8} → {line}")
    if any(finding.level == "problem" for finding in findings):
        raise typer.Exit(1)
