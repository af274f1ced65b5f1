"""Figures with their intervals, as sentences have them."""

from collections.abc import Sequence

from rnnbench.report import units
from rnnbench.stats.bootstrap import Interval


def duration(value: Interval) -> str:
    """`184 ms [172, 199]`."""
    return f"{units.seconds(value.estimate)} {units.span(value.low, value.high, value.estimate)}"


def times(value: Interval) -> str:
    """`1.39 times [1.24, 1.55]`."""
    return f"{units.figures(value.estimate)} times [{units.figures(value.low)}, {units.figures(value.high)}]"


def percent(value: Interval) -> str:
    """`13.0 % [-20.6, 35.4]`."""
    low, estimate, high = (units.figures(100 * one) for one in value)
    return f"{estimate} % [{low}, {high}]"


def count(value: Interval) -> str:
    """`716 [402, 2,574]`; anything below one is the first."""
    low, estimate, high = (f"{max(1, round(one)):,}" for one in value)
    return f"{estimate} [{low}, {high}]"


def listing(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
