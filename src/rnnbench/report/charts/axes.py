"""Axes of time, which every chart has."""

import math
from collections.abc import Iterable

import altair as alt

#: Vega's expression for `312 ms`, `1.5 s`, `48 µs` under a tick that stands at so many seconds.
TIME_LABEL = (
    "datum.value >= 1 ? format(datum.value, ',~r') + ' s'"
    " : datum.value >= 1e-3 ? format(datum.value * 1e3, '~r') + ' ms'"
    " : datum.value == 0 ? '0' : format(datum.value * 1e6, '~r') + ' µs'"
)


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each decade; within one decade some more, over many only the ones."""
    digits = (1, 1.5, 2, 3, 4, 5, 7) if high / low < 10 else (1, 2, 5) if high / low < 1e3 else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    found = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in digits]
    return [value for value in found if low <= value <= high]


def log_domain(values: Iterable[float], margin: float = 1.25) -> tuple[float, float]:
    """Room for all values, with a margin; at least from one tick to the next, so that an axis has labels."""
    known = list(values)
    low, high = min(known) / margin, max(known) * margin
    while len(log_ticks(low, high)) < 2:
        low, high = low / 1.2, high * 1.2
    return low, high


def log_times(low: float, high: float, title: str) -> dict[str, alt.Scale | alt.Axis]:
    """`scale` and `axis` of a logarithmic axis of ratios."""
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    label = "format(datum.value, '~r') + '×'"
    return {"scale": scale, "axis": alt.Axis(values=log_ticks(low, high), labelExpr=label, title=title)}


def log_time(low: float, high: float, title: str) -> dict[str, alt.Scale | alt.Axis]:
    """`scale` and `axis` of a logarithmic axis in seconds."""
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    return {"scale": scale, "axis": alt.Axis(values=log_ticks(low, high), labelExpr=TIME_LABEL, title=title)}
