"""Options that several commands share, how they are checked and read, and two ways of printing."""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rnnbench.analysis.differences import DifferenceKind
    from rnnbench.domain.workload import Workload
    from rnnbench.plan import Selection
    from rnnbench.store import Contents
    from rnnbench.text import Column


def run_folder(text: str) -> Path:
    """The folder of a run that the user names: `last` is the newest."""
    from rnnbench.last_run import run_named

    return run_named(Path(text))


RunFolder = Annotated[
    Path, typer.Argument(metavar="RUN", parser=run_folder, help="The run's folder, or last: the newest run.")
]
RunFolders = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...", parser=run_folder, help="Run folders, of one or several machines; last: the newest."
    ),
]
Wide = Annotated[bool, typer.Option("--wide", help="Every column and reason, however narrow the terminal is.")]
Legend = Annotated[bool, typer.Option("--legend", help="Also explain the columns.")]
Systems = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SELECT]...", help="Systems by name or glob, e.g. 'pytorch/*/eager'. Default: all."),
]
Workloads = Annotated[
    list[str] | None,
    typer.Option("--workload", "-w", metavar="NAME", help="e.g. ce-short or 'ptb-lm[batch=16,steps=20]'. Repeatable."),
]
WorkloadFile = Annotated[
    Path | None, typer.Option("--workloads-from", metavar="FILE", help="TOML file with your own workloads.")
]
Phases = Annotated[
    list[str] | None, typer.Option("--phase", metavar="PHASE", help="forward or train. Repeatable. Default: both.")
]
DeviceOption = Annotated[str, typer.Option("--device", metavar="DEVICE", help="cpu, cuda, or auto: the GPU if any.")]
Precisions = Annotated[
    list[str] | None,
    typer.Option("--precision", metavar="PREC", help="fp32, tf32 or bf16. Repeatable. Default: fp32."),
]
Versions = Annotated[
    str,
    typer.Option(
        "--versions",
        metavar="LIST",
        help="e.g. 1.0.0,2.13.0, or pytorch==1.0.0 for one of several frameworks. Default: the manifest's.",
    ),
]
Threads = Annotated[int, typer.Option("--threads", metavar="N", help="Per worker. 0: one per physical core.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="For weights, batches and the order of launches.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="With --resume: try again what failed.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="With --resume: start the interpreters that the run names, known here or not.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def one_of(value: str, allowed: tuple[str, ...], what: str) -> str:
    """Return the value, or raise a UserError that lists the allowed ones."""
    from rnnbench.errors import UserError

    if value not in allowed:
        raise UserError(f"'{value}' is not a valid {what}", f"allowed: {', '.join(allowed)}")
    return value


def at_least(value: float, least: float, option: str) -> None:
    from rnnbench.errors import UserError

    if value < least:
        raise UserError(f"{option} is {value:g}", f"it must be at least {least:g}")


def percent(text: str, option: str) -> float:
    """Read `5%` as 0.05. The sign is required, because a plain 0.05 would be ambiguous."""
    from rnnbench.errors import UserError

    number, sign, rest = text.partition("%")
    try:
        value = float(number) / 100
    except ValueError:
        value = -1.0
    if not sign or rest or not value >= 0:
        raise UserError(f"{option} is '{text}'", "write it like 5%")
    if value >= 10:
        raise UserError(f"{option} is '{text}', which is too large", "it must be below 1000%")
    return value


def differences(text: str) -> "list[DifferenceKind]":
    """Read the differences that a comparison allows, such as `source,machine`."""
    from rnnbench.analysis.differences import CROSSABLE

    parts = [part.strip() for part in text.split(",")]
    given = {one_of(part, tuple(CROSSABLE), "difference that can be allowed") for part in parts if part}
    return [kind for kind in CROSSABLE if kind in given]


def read_workloads(names: list[str] | None, file: Path | None) -> "tuple[Workload, ...]":
    """The named workloads, from the catalogue and the user's file; without names, all workloads of the file."""
    from rnnbench.domain.catalog import CATALOG, load_workloads, parse_workload

    own = load_workloads(file) if file else {}
    if not names:
        return tuple(own.values())
    known = {**CATALOG, **own}
    chosen = [parse_workload(name, known) for name in names]
    return tuple({workload.name: workload for workload in chosen}.values())


@dataclass(frozen=True)
class CaseOptions:
    """The options that choose a command's cases, as the user gave them."""

    select: Systems = None
    workload: Workloads = None
    workloads_from: WorkloadFile = None
    phase: Phases = None
    device: DeviceOption = "auto"
    precision: Precisions = None
    versions: Versions = ""

    @property
    def any_given(self) -> bool:
        """Whether the user gave any of them. The device does not count, because it has a default."""
        return any((self.select, self.workload, self.workloads_from, self.phase, self.precision, self.versions))

    def selection(self, headline: bool = False) -> "Selection":
        workloads = read_workloads(self.workload, self.workloads_from)
        return read_selection(self.select, workloads, self.phase, self.device, self.precision, self.versions, headline)


def with_case_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `CaseOptions` to a command whose first parameter is `cases: CaseOptions`, before its own."""
    shared = list(inspect.signature(CaseOptions).parameters.values())
    own = list(inspect.signature(command).parameters.values())[1:]

    @functools.wraps(command)
    def called(**given: Any) -> None:
        chosen = CaseOptions(**{parameter.name: given.pop(parameter.name) for parameter in shared})
        command(chosen, **given)

    # Typer reads the options from here, and passes all of them by name.
    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*shared, *own)]
    )
    called.__annotations__ = {one.name: one.annotation for one in (*shared, *own)}
    return called


def read_selection(
    patterns: list[str] | None,
    workloads: "tuple[Workload, ...]",
    phases: list[str] | None,
    device: str,
    precisions: list[str] | None,
    versions: str,
    headline: bool = False,
) -> "Selection":
    import msgspec

    from rnnbench.domain.system import PHASES, PRECISIONS
    from rnnbench.plan import Selection

    chosen_phases = [one_of(phase, PHASES, "phase") for phase in phases or PHASES]
    chosen_precisions = [one_of(precision, PRECISIONS, "precision") for precision in precisions or ["fp32"]]
    return msgspec.convert(
        {
            "systems": tuple(patterns or ()),
            "workloads": workloads,
            "phases": tuple(dict.fromkeys(chosen_phases)),
            "device": device,
            "precisions": tuple(dict.fromkeys(chosen_precisions)),
            "versions": tuple(dict.fromkeys(filter(None, (part.strip() for part in versions.split(","))))),
            "headline": headline,
        },
        Selection,
    )


def resumed_with_trust(resume: Callable[[bool], None], trust: bool) -> None:
    """Call `resume(trust)`. If the run names an interpreter that is not known here, ask, where there is somebody to."""
    import sys

    from rnnbench.resuming import UnknownInterpreter

    try:
        resume(trust)
    except UnknownInterpreter as error:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        say(f"rnnbench: {error.what}", err=True)
        if not typer.confirm("Do you trust this run, and start it?", default=False, err=True):
            raise
        resume(True)


_NO_LIMIT = 100_000  # characters in a line of a file or a pipe


def terminal_width() -> int:
    """The characters that fit into a line; COLUMNS is believed, and what is not a terminal has no limit."""
    import shutil

    return max(40, shutil.get_terminal_size((_NO_LIMIT, 0)).columns)


def say(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print text that may come from others: no control character of it reaches the terminal. All output goes here."""
    from rnnbench.text import printable

    typer.echo(printable(str(text)), err=err, nl=nl)


def say_table(columns: "Sequence[Column]", rows: "Sequence[Sequence[str]]", wide: bool = False) -> None:
    """Print a table that fits the terminal, and say what was dropped for it."""
    from rnnbench.text import render_fitted

    table, dropped = render_fitted(columns, rows, None if wide else terminal_width())
    say(table)
    if dropped:
        say(f"\n--wide shows the columns {', '.join(dropped)}")


def print_json(value: object) -> None:
    """Print for `--json`, indented so that people can read it too."""
    import msgspec

    say(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def warn_of_damage(name: str, contents: "Contents") -> None:
    """Report on standard error the lines of a run's folder that could not be read."""
    for line in contents.damaged:
        say(f"rnnbench: {name}launches.jsonl, {line}: skipped", err=True)
