"""`rnnbench compare`: show what changed between two runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rnnbench.cli.options import Json, Wide, print_json, say, terminal_width, warn_of_damage

if TYPE_CHECKING:
    from rnnbench.analysis.differences import DifferenceKind
    from rnnbench.store import Contents


def compare(
    a: Annotated[
        str, typer.Argument(metavar="A", help="The earlier run's folder, or FOLDER@ENVIRONMENT; last: the newest.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The later run's folder, which is judged.")],
    across: Annotated[
        str,
        typer.Option(
            metavar="KINDS", help="What may differ, separated by commas: environment, source, machine, method."
        ),
    ] = "",
    threshold: Annotated[str, typer.Option(metavar="PERCENT", help="Smaller differences count as noise.")] = "1%",
    fail_above: Annotated[
        str, typer.Option(metavar="PERCENT", help="Exit with 1 if a case is slower by more than this.")
    ] = "",
    wide: Wide = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
    as_json: Json = False,
) -> None:
    """Compare run B with run A, case by case: ratio, interval and verdict.

    A case is faster or slower only when the whole 95 % interval of its ratio lies beyond the threshold.
    It is not comparable when workload, environment, source, machine or method differ. --across allows
    the differences that you want to compare.

    With --fail-above the exit code is 1 when the whole interval of a case lies above that slowdown, when
    a case that worked in A fails or is wrong in B, or when nothing could be compared.

    \b
    Examples:
      rnnbench compare runs/before last
      rnnbench compare runs/torch-2.9 runs/torch-2.13 --across environment
      rnnbench compare runs/both@pytorch-2.9.1 runs/both@pytorch-2.13.0
      rnnbench compare runs/main runs/branch --across source --fail-above 5% --markdown
    """
    from rnnbench.analysis.compare import compare_runs, failures
    from rnnbench.cli.options import percent
    from rnnbench.errors import UserError
    from rnnbench.report.comparison import NamedRun, as_fields, as_markdown, as_text

    if markdown and as_json:
        raise UserError("--markdown and --json cannot be combined", "give one of them")
    noise = percent(threshold, "--threshold")
    limit = percent(fail_above, "--fail-above") if fail_above else None
    (first, first_named), (second, second_named) = _read_run(a), _read_run(b)
    kinds = _allowed_differences(across, both_named=first_named and second_named)
    found = compare_runs(first, second, across=kinds, threshold=noise)
    failed = [] if limit is None else failures(found, limit)
    sides = NamedRun(a, first.run), NamedRun(b, second.run)
    if as_json:
        fields = as_fields(found, *sides, failed)
        print_json(fields)
    else:
        width = None if wide else terminal_width()
        say(as_markdown(found, *sides, failed) if markdown else as_text(found, *sides, failed, width))
    for name, contents in ((a, first), (b, second)):
        warn_of_damage(f"{name}, ", contents)
    if failed:
        raise typer.Exit(1)


def _read_run(text: str) -> "tuple[Contents, bool]":
    """Read a run, and whether one of its environments was named."""
    from rnnbench.analysis.compare import choose_environment
    from rnnbench.cli.options import run_folder
    from rnnbench.store import read_folder

    path, at, environment = text.rpartition("@")
    if at and not Path(text).exists():
        return choose_environment(read_folder(run_folder(path)), environment), True
    return read_folder(run_folder(text)), False


def _allowed_differences(text: str, both_named: bool) -> "list[DifferenceKind]":
    from rnnbench.cli.options import differences

    # Naming two environments means that they are what is compared.
    return differences(f"{text},environment" if both_named else text)
