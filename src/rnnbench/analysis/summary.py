"""What the numbers of a group say, in sentences. One that would be wrong for other numbers is not printed."""

from typing import Literal

import msgspec

from rnnbench.analysis.names import Who
from rnnbench.stats.bootstrap import Interval

Kind = Literal[
    "fastest",  # told apart from every other verified row
    "level",  # the best row, and those it is not told apart from
    "only",  # one verified row, nothing to compare it with
    "none",  # no verified row
    "cost",  # what the best row needs
    "gap",
    "no gap",
    "recovered",
    "not recovered",
    "pays",  # after so many batches
    "limit",
    "wrong",  # rows that computed something else
    "caution",
]


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence, and what it rests on: the rows it speaks of and its figure."""

    kind: Kind
    text: str
    about: tuple[Who, ...] = ()
    figure: Interval | None = None
