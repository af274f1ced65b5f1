"""A panel: one group of rows as it is shown, those that count above the line and the others below it."""

from collections.abc import Sequence
from functools import cached_property

from rnnbench.analysis.analyse import Analysis, GroupAnalysis
from rnnbench.analysis.names import Group, Who, short_names, who
from rnnbench.analysis.rows import Row
from rnnbench.report.lines import above_the_line, below_the_line


class Panel:
    """The rows of one run that differ in nothing but who computes them, and what was found about them."""

    def __init__(self, found: GroupAnalysis, rows: Sequence[Row]) -> None:
        self.found = found
        self.group: Group = found.group
        self.rows = rows
        self.title = str(found.group)

    @cached_property
    def timed(self) -> list[Row]:
        return above_the_line(self.rows)

    @cached_property
    def below(self) -> list[Row]:
        return below_the_line(self.rows)

    @cached_property
    def verified(self) -> list[Row]:
        return [row for row in self.timed if row.status == "verified"]

    @cached_property
    def _names(self) -> dict[Who, str]:
        return short_names(self.rows)

    def name(self, row: Row) -> str:
        """The system's name, with its environment where it is here in several."""
        return self._names[who(row)]


def make_panels(analysis: Analysis) -> list[Panel]:
    """One for each group, in the order of the runs and their plans."""
    members: dict[Group, list[Row]] = {}
    for run, rows in enumerate(analysis.rows):
        for row in rows:
            members.setdefault(Group(run, *row.group), []).append(row)
    return [Panel(found, members[found.group]) for found in analysis.groups]
