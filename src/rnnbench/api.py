"""The functions and types that `import rnnbench` offers."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rnnbench import abilities, session
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
from rnnbench.report.document import Analysis, analyse
from rnnbench.store import Contents, read_folder
from rnnbench.verify import verifier
from rnnbench.verify.verifier import VerifiedPlan


class Results:
    """A run as read from its folder: `contents` is what is stored, `rows` what the tables show."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.rows: list[Row] = make_rows(contents)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One flat dict per row, for `pandas.DataFrame` or `polars.DataFrame`."""
        return [msgspec.structs.asdict(row) for row in self.rows]


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


def run_plan(
    plan: Plan, folder: str | Path, *, listener: Listener | None = None, profile: bool = False, **method: Any
) -> Results:
    """Run a plan into a new folder, and profile its cases if `profile`. `method` takes the options of `make_method`."""
    contents = session.run(
        plan,
        make_method(**method),
        Path(folder),
        listener or Listener(),
        command=("rnnbench.run_plan",),
        profile=profile,
    )
    return Results(contents)


def verify_plan(plan: Plan, *, listener: Listener | None = None, use_cache: bool = True, **method: Any) -> VerifiedPlan:
    """Verify every case of a plan on the small version of its workload. Nothing is timed."""
    return verifier.verify_plan(plan, make_method(**method), listener or Listener(), use_cache=use_cache)


def try_abilities(
    plan: Plan, *, listener: Listener | None = None, use_cache: bool = True, **method: Any
) -> list[Entry]:
    """Try what the systems of a plan can do beyond the plain layer; its workloads do not matter. Nothing is timed."""
    return abilities.try_abilities(plan, make_method(**method), listener or Listener(), use_cache=use_cache)


def load_run(folder: str | Path) -> Results:
    """Read a run from its folder; `last` is the newest run."""
    return Results(read_folder(run_named(Path(folder))))


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
