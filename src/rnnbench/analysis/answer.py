"""What a table answers: the best row, the rows level with it, and what loops of one's own and layers cost.

The terminal, `explain` and the page all say it. Which rows are level, and how loops and layers are called, is decided
here and in `row.py`, once.
"""

from collections.abc import Iterable, Sequence

import msgspec

from rnnbench.analysis.row import Row, RowId, is_loop, is_slower, is_verified, row_id, short_names


class Cost(msgspec.Struct, frozen=True):
    """One verified row that a reader may have at home; its ratio is the cost, where a cost is seen."""

    row: Row
    name: str  # `pytorch` for its loop, `torch.nn.LSTM` for its layer

    @property
    def seen(self) -> bool:
        return is_slower(self.row)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Of one group with a verified row. All rows in it are verified, and all but the best are fastest first."""

    best: Row
    others: int  # how many other verified rows there are
    level: tuple[Row, ...]  # those of them from which the best is not distinguished
    loops: tuple[Cost, ...]  # the fine-grained loop of each framework that has one
    layers: tuple[Cost, ...]  # the frameworks' own layers, called as most people call them: eagerly
    names: dict[RowId, str]  # of all rows of the group

    def name(self, row: Row) -> str:
        return self.names[row_id(row)]


def find_answer(rows: Sequence[Row]) -> Answer | None:
    """Of the rows of one group; None where none is verified, so that nothing can be said about speed."""
    verified = sorted((row for row in rows if is_verified(row)), key=lambda row: row.wall_s or 0.0)
    best = next((row for row in verified if row.best), None)
    if best is None:
        return None
    others = [row for row in verified if row is not best]
    names = short_names(rows)
    places = loop_places(verified)
    layers = [row for row in others if row.execution == "eager" and row.granularity in ("layer", "stack")]
    return Answer(
        best=best,
        others=len(others),
        level=tuple(row for row in others if not is_slower(row)),
        loops=tuple(Cost(row, places[row_id(row)]) for row in verified if is_loop(row)),
        layers=tuple(Cost(row, _known_as(row, names[row_id(row)])) for row in layers),
        names=names,
    )


def loop_places(rows: Iterable[Row]) -> dict[RowId, str]:
    """Where each loop runs: the framework, or the environment where versions of one framework have it."""
    loops = [row for row in rows if is_loop(row)]
    return {
        row_id(row): row.environment if sum(other.system == row.system for other in loops) > 1 else row.framework
        for row in loops
    }


def _known_as(row: Row, name: str) -> str:
    """`torch.nn.LSTM` where the system's description begins with such a name and a colon."""
    known, colon, _ = row.description.partition(":")
    colon = colon if "cell=" not in row.workload else ""  # then it is another layer than the one described
    return known if colon and "." in known and " " not in known and "@" not in name else name
