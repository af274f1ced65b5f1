"""Numbers, intervals and lists as text: three figures and a unit."""

import math
from collections.abc import Sequence

from rnnbench.domain.result import Interval

#: After a time or a ratio whose interval is wider than ±20 %, and its meaning in every legend.
UNCERTAIN_MARK = "±"
UNCERTAIN_MEANING = "uncertain: the 95 % interval of this figure is wider than ±20 %"


def marked(text: str, uncertain: bool) -> str:
    """`1.85 s±`: a figure with the mark, where it is uncertain."""
    return text + UNCERTAIN_MARK if uncertain else text


def seconds(value: float | None) -> str:
    """`312 ms`, `1.52 s`, `48.1 µs`; a dash if it was not measured."""
    if value is None:
        return "–"
    if value == 0:
        return "0 s"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= scale or unit == "µs":
            return f"{figures(value / scale)} {unit}"
    raise AssertionError("unreachable")


def span(low: float | None, high: float | None, estimate: float | None) -> str:
    """An interval in the unit of its estimate: `[305, 320]`."""
    if low is None or high is None or estimate is None:
        return ""
    scale = 1.0 if abs(estimate) >= 1.0 else 1e-3 if abs(estimate) >= 1e-3 else 1e-6
    return f"[{figures(low / scale)}, {figures(high / scale)}]"


def size(value: int | None) -> str:
    """`1.20 GB`: a kilobyte has 1000 bytes."""
    if value is None:
        return "–"
    amount = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{figures(amount)} {unit}"
        amount /= 1000
    raise AssertionError("unreachable")


def rate(value: float | None, of: str) -> str:
    """`98.2 GFLOP/s`, `1.20 TB/s`."""
    if value is None:
        return "–"
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= scale or prefix == "M":
            return f"{figures(value / scale)} {prefix}{of}/s"
    raise AssertionError("unreachable")


def times(value: float | None) -> str:
    """A ratio: `1.00×`."""
    return "–" if value is None else f"{value:.2f}×" if value < 100 else f"{value:.0f}×"


def figures(value: float) -> str:
    """Three figures, no exponent, commas between thousands."""
    magnitude = abs(value)
    if magnitude >= 100:
        return f"{value:,.0f}"
    if magnitude >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def precise(value: float | None) -> str:
    """Six figures and at least four decimals, no exponent: for tables whose numbers are used in calculations."""
    if value is None:
        return ""
    decimals = 4 if value == 0 else max(4, 5 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def share(value: float | None) -> str:
    """A part of 1: `38 %`."""
    if value is None:
        return "–"
    return f"{100 * value:.{0 if value >= 0.0995 else 1}f} %"


def duration(value: float) -> str:
    """`45 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole < 600 else f"{round(whole / 60)} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def seconds_interval(value: Interval) -> str:
    """`184 ms [172, 199]`, `184 ms± [120, 260]`."""
    return f"{marked(seconds(value.estimate), value.uncertain)} {span(value.low, value.high, value.estimate)}"


def times_interval(value: Interval) -> str:
    """`1.39 times [1.24, 1.55]`, `1.39± times [0.93, 1.98]`."""
    return f"{marked(figures(value.estimate), value.uncertain)} times [{figures(value.low)}, {figures(value.high)}]"


def percent_interval(value: Interval) -> str:
    """`13.0 % [-20.6, 35.4]`."""
    low, estimate, high = (figures(100 * one) for one in value)
    return f"{marked(f'{estimate} %', value.uncertain)} [{low}, {high}]"


def count_interval(value: Interval) -> str:
    """`716 [402, 2,574]`; values below 1 become 1, the number of the first batch."""
    whole = Interval(*(max(1, round(one)) for one in value))
    return f"{marked(f'{whole.estimate:,}', whole.uncertain)} [{whole.low:,}, {whole.high:,}]"


def listing(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
