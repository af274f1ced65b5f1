"""A panel: one group of rows as it is shown, those that count above the line and the others below it."""

from collections.abc import Iterable
from functools import cached_property

from rnnbench.analysis.names import Group, short_names, who
from rnnbench.analysis.rows import Row

#: Below the line in this order.
BELOW = ("wrong", "failed", "timeout", "unverified", "unsupported")


class Panel:
    """The rows of one run that differ in nothing but who computes them."""

    def __init__(self, group: Group, rows: Iterable[Row]) -> None:
        self.group = group
        self.rows = tuple(rows)
        self.title = str(group)

    @cached_property
    def timed(self) -> list[Row]:
        """Above the line, fastest first: measured, and not known to be wrong."""
        return sorted((row for row in self.rows if counts(row)), key=lambda row: row.wall_s or 0.0)

    @cached_property
    def below(self) -> list[Row]:
        """The others. A wrong row keeps its time, but stands here."""
        return sorted((row for row in self.rows if not counts(row)), key=lambda row: BELOW.index(row.status))

    @cached_property
    def _names(self) -> dict[object, str]:
        return {**short_names(self.rows)}

    def name(self, row: Row) -> str:
        """The system's name, with its environment where it is here in several."""
        return self._names[who(row)]


def counts(row: Row) -> bool:
    return row.wall_s is not None and row.status in ("verified", "unverified")


def make_panels(run: int, rows: Iterable[Row]) -> list[Panel]:
    """In the order of the run's plan."""
    found: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in rows:
        found.setdefault(row.group, []).append(row)
    return [Panel(Group(run, *key), members) for key, members in found.items()]
