"""Which rows of a group stand above the line of its table, which below it, and in what order."""

from collections.abc import Iterable

from rnnbench.analysis.rows import Row

#: The order below the line.
BELOW = ("wrong", "failed", "timeout", "unverified", "unsupported")


def counts(row: Row) -> bool:
    """Measured, and not known to be wrong."""
    return row.wall_s is not None and row.status in ("verified", "unverified")


def above_the_line(rows: Iterable[Row]) -> list[Row]:
    """Fastest first."""
    return sorted((row for row in rows if counts(row)), key=lambda row: row.wall_s or 0.0)


def below_the_line(rows: Iterable[Row]) -> list[Row]:
    """A wrong row keeps its time, but stands here."""
    return sorted((row for row in rows if not counts(row)), key=lambda row: BELOW.index(row.status))
