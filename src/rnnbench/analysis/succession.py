"""A row of one version beside that of another, or a historic system's beside its successor's, compared as two runs."""

from collections.abc import Collection, Sequence

import msgspec

from rnnbench.analysis.compare import Compared, compare_runs
from rnnbench.analysis.differences import Kind
from rnnbench.analysis.pairs import choose_environment
from rnnbench.analysis.rows import Row
from rnnbench.domain.case import Case
from rnnbench.domain.result import Limit
from rnnbench.store.folder import Contents


class Entry(msgspec.Struct, frozen=True):
    """A row with the run it is from."""

    run: int
    row: Row
    version: str
    successor: str = ""


class Comparer:
    """Compares environments of runs, each pair of them once, whatever system asks."""

    def __init__(self, runs: Sequence[Contents], across: Collection[Kind]) -> None:
        self._runs = runs
        self._across: tuple[Kind, ...] = ("environment", *(kind for kind in across if kind != "environment"))
        self._known: dict[tuple[object, ...], dict[tuple[str, ...], Compared]] = {}

    def between(self, newest: Entry, other: Entry) -> Compared:
        """How many times as long the other takes."""
        heir, system = newest.row.system, other.row.system
        renamed = (system, heir) if system != heir else ()
        key = (newest.run, newest.row.environment, other.run, other.row.environment, renamed)
        if key not in self._known:
            base, versus = (
                choose_environment(self._runs[entry.run], entry.row.environment) for entry in (newest, other)
            )
            across = self._across
            if renamed:  # that another program stands in its place is what is looked at
                versus = _rename(versus, system, heir)
                across = (*across, *(() if "source" in across else ("source",)))
            cases = compare_runs(base, versus, across=across).cases
            self._known[key] = {(case.system, *case.group): case for case in cases}
        return self._known[key][(heir, *other.row.group)]


def _rename(contents: Contents, system: str, heir: str) -> Contents:
    """The run as if a historic system had had its successor's name, and nothing else had been run."""

    def renamed(case: Case) -> Case:
        return msgspec.structs.replace(case, system=heir)

    run = contents.run
    kept = msgspec.structs.replace(
        run,
        cases=tuple(renamed(case) for case in run.cases if case.system == system),
        left_out=(),
        systems={heir: run.systems[system]},
    )
    records = tuple(
        msgspec.structs.replace(record, case=renamed(record.case))
        for record in contents.records
        if not isinstance(record, Limit) and record.case.system == system
    )
    return msgspec.structs.replace(contents, run=kept, records=records)
