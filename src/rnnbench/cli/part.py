"""`rnnbench part`: what a job of a spread run calls on its node."""

from pathlib import Path
from typing import Annotated

import typer


def part(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a spread run.")],
    number: Annotated[int, typer.Argument(metavar="PART", help="0: plan and verify. Others: time a group.")],
) -> None:
    """Work on one part of a spread run, on this node. Jobs that `rnnbench run --on slurm` submits call it.

    \b
    Example:
      rnnbench part runs/2026-11-15-101500 3
    """
    from rnnbench.cli.progress import Progress
    from rnnbench.spread.node import work_on_part

    with Progress() as progress:
        work_on_part(run, number, progress)
