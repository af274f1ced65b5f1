"""The functions and types that `import rnnbench` offers."""

import importlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from rnnbench import abilities, own_cell, session
from rnnbench.analysis import check, compare
from rnnbench.analysis.check import Finding
from rnnbench.analysis.compare import THRESHOLD, RunComparison
from rnnbench.analysis.differences import CROSSABLE, DifferenceKind
from rnnbench.analysis.history import HistoryLine, make_history
from rnnbench.analysis.row import Row
from rnnbench.analysis.rows import make_rows
from rnnbench.domain.ability import Entry
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.system import PHASES, PRECISIONS
from rnnbench.domain.workload import Workload
from rnnbench.errors import UserError
from rnnbench.last_run import run_named
from rnnbench.launch.listener import Listener
from rnnbench.method import make_method
from rnnbench.plan import Plan, Selection
from rnnbench.plan import join_plans as join_plans  # part of the API as it is
from rnnbench.plan import make_plan as plan_selection
from rnnbench.progress.notebook import NotebookProgress, in_notebook
from rnnbench.published.sections import claims_as_text
from rnnbench.report.document import Analysis, Document, analyse
from rnnbench.report.explanation import show_advice, show_details
from rnnbench.report.notebook import rows_as_html
from rnnbench.report.write import FORMATS, write_document
from rnnbench.store import Contents, read_folder
from rnnbench.verify import verifier
from rnnbench.verify.verifier import VerifiedPlan

_WIDTH = 110  # of the lines of an explanation


class Prose(str):
    """A text of several lines that a notebook or a prompt shows as it is, not as a quoted string."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Results:
    """A run as read from its folder: `contents` is what is stored, `rows` what the tables show.

    In a notebook it is shown as its tables, with their answer.
    """

    def __init__(self, contents: Contents, name: str = "run") -> None:
        self.contents = contents
        self.name = name
        self.rows: list[Row] = make_rows(contents)

    def __repr__(self) -> str:
        verified = sum(row.status == "verified" for row in self.rows)
        return f"<rnnbench.Results of {self.name!r}: {len(self.rows)} rows, {verified} verified>"

    def _repr_html_(self) -> str:
        return rows_as_html(self.rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One flat dict per row, for `pandas.DataFrame` or `polars.DataFrame`."""
        return [msgspec.structs.asdict(row) for row in self.rows]

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a line for each row. pandas is not installed with rnnbench."""
        try:
            pandas = importlib.import_module("pandas")  # optional: the driver imports its dependencies alone by name
        except ImportError as error:
            raise UserError("pandas is not installed here", "pip install pandas, or use to_dicts()") from error
        return pandas.DataFrame(self.to_dicts())

    def report(
        self, folder: str | Path, formats: Iterable[str] | str = FORMATS, charts: int | None = None
    ) -> list[Path]:
        """Write the page, Markdown, CSV, JSON and charts into a folder; returns the files."""
        document = Document([self.name], [self.contents])
        return write_document(document, Path(folder), [formats] if isinstance(formats, str) else formats, charts)

    def explain(self, details: bool = False, claims: bool = False) -> Prose:
        """What to do, in ten lines. `details`: every sentence with tables; `claims`: Carrot's (2019), tested here."""
        analysis = analyse([self.contents])
        parts = [show_details(analysis, [self.contents.run], analysis.groups, None)] if details else []
        parts += [claims_as_text(analysis.claims)] if claims else []
        return Prose("\n".join(parts or [show_advice(analysis, analysis.groups, _WIDTH)]))


def make_plan(
    systems: Sequence[str] = (),
    workloads: Sequence[str | Workload] = (),
    *,
    phases: Sequence[str] = ("forward", "train"),
    device: str = "auto",
    precisions: Sequence[str] = ("fp32",),
    versions: Sequence[str] = (),
) -> Plan:
    """The cases that would be run. Systems are chosen by globs, workloads by name or as objects. Runs nothing."""
    phases, precisions = _as_several(phases), _as_several(precisions)
    _require_known("phases", phases, PHASES)
    _require_known("precisions", precisions, PRECISIONS)
    names: Sequence[str | Workload] = (workloads,) if isinstance(workloads, str) else workloads
    chosen = tuple(one if isinstance(one, Workload) else parse_workload(one) for one in names)
    fields = {
        "systems": tuple(_as_several(systems)),
        "workloads": chosen,
        "phases": tuple(phases),
        "device": device,
        "precisions": tuple(precisions),
        "versions": tuple(_as_several(versions)),
    }
    try:
        selection = msgspec.convert(fields, Selection)
    except msgspec.ValidationError as error:
        raise UserError(f"these arguments choose no plan: {error}", "see help(rnnbench.make_plan)") from error
    return plan_selection(selection)


def plan_cell(
    cell: str,
    systems: Sequence[str] = (),
    *,
    input: int = 123,
    hidden: int = 320,
    batch: int = 64,
    steps: int = 100,
    arguments: Mapping[str, Any] | None = None,
    phases: Sequence[str] = ("forward", "train"),
    device: str = "auto",
    python: str | Path | None = None,
    listener: Listener | None = None,
) -> Plan:
    """The rows of a user's own cell, `my_cell.py:MyCell`, and torch.nn.LSTM of the same sizes, as `rnnbench cell`.

    A worker looks at the class, in an environment that is created if it is missing, or in the interpreter `python`.
    """
    phases = _as_several(phases)
    _require_known("phases", phases, PHASES)
    request = own_cell.Request(
        own=msgspec.structs.replace(own_cell.read_cell(cell), arguments=dict(arguments or {})),
        sizes={"features": input, "hidden": hidden, "batch": batch, "steps": steps},
        phases=tuple(phase for phase in PHASES if phase in phases),
        device=device,
        systems=tuple(_as_several(systems)),
        python=Path(python) if python else None,
    )
    return own_cell.plan_cell(request, make_method(), listener or Listener())


def run_plan(
    plan: Plan, folder: str | Path, *, listener: Listener | None = None, profile: bool = False, **method: Any
) -> Results:
    """Run a plan into a new folder, and profile its cases if `profile`. `method` takes the options of `make_method`."""
    with _listening(listener) as heard:
        contents = session.run(
            plan,
            make_method(**method),
            Path(folder),
            heard,
            command=("rnnbench.run_plan",),
            profile=profile,
        )
    return Results(contents, _name(Path(folder)))


def verify_plan(plan: Plan, *, listener: Listener | None = None, use_cache: bool = True, **method: Any) -> VerifiedPlan:
    """Verify every case of a plan on the small version of its workload. Nothing is timed."""
    with _listening(listener) as heard:
        return verifier.verify_plan(plan, make_method(**method), heard, use_cache=use_cache)


def try_abilities(
    plan: Plan, *, listener: Listener | None = None, use_cache: bool = True, **method: Any
) -> list[Entry]:
    """Try what the systems of a plan can do beyond the plain layer; its workloads do not matter. Nothing is timed."""
    with _listening(listener) as heard:
        return abilities.try_abilities(plan, make_method(**method), heard, use_cache=use_cache)


def load_run(folder: str | Path) -> Results:
    """Read a run from its folder; `last` is the newest run."""
    found = run_named(Path(folder))
    return Results(read_folder(found), _name(found))


def compare_runs(
    a: Results, b: Results, *, across: Collection[str] = (), threshold: float = THRESHOLD
) -> RunComparison:
    """Compare run B with run A, case by case. `across` names the differences that are intended."""
    return compare.compare_runs(a.contents, b.contents, across=_difference_kinds(across), threshold=threshold)


def analyse_runs(*results: Results) -> Analysis:
    """What one or several runs show: gaps, what is recovered, break-even, limits, sentences, Carrot's (2019) claims."""
    return analyse([one.contents for one in results])


def version_history(
    *results: Results, systems: Sequence[str] = (), workloads: Collection[str] = (), across: Collection[str] = ()
) -> tuple[HistoryLine, ...]:
    """Systems over the versions of their framework, from old to new, each relative to the newest verified version."""
    names = [f"run {number}" for number in range(1, len(results) + 1)]
    contents = [one.contents for one in results]
    return make_history(names, contents, systems=systems, workloads=workloads, across=_difference_kinds(across))


def check_run(results: Results) -> list[Finding]:
    """Judge whether a run is fit to be published: it is when no finding has the level `problem`."""
    return check.check_run(results.contents)


@contextmanager
def _listening(listener: Listener | None) -> Iterator[Listener]:
    """The listener that was given; otherwise a line of progress in a notebook, and silence elsewhere."""
    if listener is not None or not in_notebook():
        yield listener or Listener()
    else:
        with NotebookProgress() as progress:
            yield progress


def _name(folder: Path) -> str:
    return folder.resolve().name


def _as_several(value: Sequence[str]) -> Sequence[str]:
    """One name stands for a list of one; its letters would be taken for names otherwise."""
    return (value,) if isinstance(value, str) else value


def _require_known(argument: str, values: Sequence[object], allowed: Sequence[str]) -> None:
    for value in values:
        if value not in allowed:
            raise UserError(f"{argument} cannot contain {value!r}", f"allowed: {', '.join(allowed)}")


def _difference_kinds(across: Collection[str]) -> list[DifferenceKind]:
    unknown = sorted(set(across) - set(CROSSABLE))
    if unknown:
        raise UserError(f"across cannot contain '{unknown[0]}'", f"allowed: {', '.join(CROSSABLE)}")
    return [kind for kind in CROSSABLE if kind in across]
