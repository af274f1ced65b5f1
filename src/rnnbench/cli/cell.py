"""`rnnbench cell`: a user's own cell in every way it can be run, verified against itself, with advice."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from rnnbench.cli.options import DeviceOption, Json, Phases, Seed, Threads, Wide, at_least, one_of
from rnnbench.cli.run import end_of_run, report_interruption
from rnnbench.cli.show import print_run


def cell(
    own: Annotated[
        str, typer.Argument(metavar="FILE[:CLASS]", help="e.g. my_cell.py:MyCell, or a file over the vocabulary.")
    ],
    select: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SELECT]...", help="Only these systems, e.g. '*/rnnfuse'. Default: all that take it."),
    ] = None,
    features: Annotated[int, typer.Option("--input", metavar="N", help="Width of the input of a step.")] = 123,
    hidden: Annotated[int, typer.Option("--hidden", metavar="N", help="Width of the hidden state.")] = 320,
    batch: Annotated[int, typer.Option("--batch", metavar="N", help="Sequences in a batch.")] = 64,
    steps: Annotated[int, typer.Option("--steps", metavar="N", help="Steps of a sequence.")] = 100,
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", metavar="NAME=VALUE", help="More for the class's constructor. Repeatable."),
    ] = None,
    phase: Phases = None,
    device: DeviceOption = "auto",
    effort: Annotated[str, typer.Option(metavar="EFFORT", help="quick, standard or thorough.")] = "quick",
    python: Annotated[
        Path | None, typer.Option("--python", metavar="PATH", help="An interpreter of yours that has PyTorch.")
    ] = None,
    limit: Annotated[float, typer.Option(metavar="SECONDS", help="Time limit per launch, compiling included.")] = 300.0,
    profile: Annotated[
        bool, typer.Option("--profile", help="Then profile every row: operators, bottleneck, new shapes.")
    ] = False,
    threads: Threads = 0,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The run's folder. Default: runs/<date and time>.")
    ] = None,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Time a cell of your own in every way it can be run, verify all of them, and say which one to use.

    A class is any torch.nn.Module called as cell(x, state) -> state, or -> (output, state), for one step. It is made as
    CLASS(input, hidden), or by the names input_size and hidden_size. Its state begins as its method initial_state(x)
    says, or with zeros in the form that works. Every row is compared with the class's own loop in float64: outputs and
    all gradients. Beside it stands torch.nn.LSTM of the same sizes.

    A file without a class is a cell over the vocabulary of rnnbench_cells, and runs in all frameworks (docs/cells.md).

    \b
    Examples:
      rnnbench cell my_cell.py:MyCell --input 123 --hidden 320
      rnnbench cell my_cell.py:MyCell --arg heads=4 --phase train --effort standard
      rnnbench cell my_cell.py:MyCell --python ~/venvs/mine --steps 20
      rnnbench cell my_cell.py 'pytorch/*' 'jax/*' --batch 16
    """
    from datetime import datetime

    import msgspec

    from rnnbench.cli.progress import Progress
    from rnnbench.domain.system import PHASES
    from rnnbench.errors import UserError
    from rnnbench.last_run import RUNS, require_other_name
    from rnnbench.method import make_method
    from rnnbench.own_cell import Request, plan_cell, read_arguments, read_cell
    from rnnbench.session import run as run_session
    from rnnbench.store import require_usable

    for value, option in ((features, "--input"), (hidden, "--hidden"), (batch, "--batch"), (steps, "--steps")):
        at_least(value, 1, option)
    phases = dict.fromkeys(one_of(one, PHASES, "phase") for one in phase or PHASES)
    method = make_method(effort=effort, limit_seconds=limit, threads=threads, seed=seed)
    found = read_cell(own)
    arguments = read_arguments(arg or ())
    if not found.class_name and (arguments or python):
        option = "--arg" if arguments else "--python"
        raise UserError(f"{option} is for a class", f"name the class: {own}:MyCell")
    folder = out or RUNS / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    require_other_name(folder)
    require_usable(folder)
    request = Request(
        own=msgspec.structs.replace(found, arguments=arguments),
        sizes={"features": features, "hidden": hidden, "batch": batch, "steps": steps},
        phases=tuple(one for one in PHASES if one in phases),
        device=device,
        systems=tuple(select or ()),
        python=python,
    )
    with Progress() as progress, report_interruption(folder, " --trust"):
        plan = plan_cell(request, method, progress)
        contents = run_session(plan, method, folder, progress, command=sys.argv[1:], profile=profile)
    end_of_run(print_run(contents, as_json, wide), folder, as_json)
