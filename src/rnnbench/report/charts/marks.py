"""Parts that charts share: colours by framework, points, logarithmic axes, the finished specification."""

import math
from collections.abc import Iterable
from textwrap import wrap
from typing import Any

import altair as alt

from rnnbench import units
from rnnbench.analysis.row import Row
from rnnbench.report.charts.labels import label_layers, text_width
from rnnbench.report.charts.theme import FONT_SIZE, Look

Data = list[dict[str, Any]]

#: The name of the layers' data. The data itself is added last, because Altair would copy it in every step.
ROWS = alt.NamedData("rows")

#: For a layer that is drawn once, independent of the rows.
ONCE = alt.InlineData(values=[{}])


def by_framework(
    names: Iterable[str], looks: dict[str, Look], width: int, explained: bool = True
) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape, with one legend for both that has as many columns as fit, unless a neighbour explains them."""
    domain = sorted(set(names))
    widths, room = [text_width(name) + _SYMBOL for name in domain], plot_width(width)
    columns = len(domain) if sum(widths) < room else max(1, int(room // max(widths)))
    # Columns are as wide as their names in the font of this drawing; a reader's may be wider.
    legend = alt.Legend(columns=columns, columnPadding=10 + 0.15 * max(widths, default=0.0)) if explained else None
    colours = alt.Scale(domain=domain, range=[looks[name].tone.light for name in domain])
    shapes = alt.Scale(domain=domain, range=[looks[name].shape for name in domain])
    return (
        alt.Color("framework", type="nominal", scale=colours, legend=legend),
        alt.Shape("framework", type="nominal", scale=shapes, legend=legend),
    )


def wall_of(row: Row) -> float:
    assert row.wall_s is not None
    return row.wall_s


def time_label(row: Row) -> str:
    """`312 ms`, with its mark where it is uncertain."""
    return units.marked(units.seconds(row.wall_s), row.uncertain)


def ends(rows: Iterable[Row]) -> list[float]:
    """The ends of the rows' intervals, for the domain of an axis."""
    return [time for row in rows for time in (row.wall_low_s, row.wall_high_s) if time]


def point(row: Row, name: str) -> dict[str, Any]:
    """The fields that every chart of a row's time needs. The page finds the row by the name before the colon."""
    times = {"wall": row.wall_s, "low": row.wall_low_s, "high": row.wall_high_s}
    return {"framework": row.framework, "about": f"{name}: {time_label(row)} a batch", **times}


def series(
    base: alt.Chart, up: dict[str, Any], *, detail: str, colour: alt.Color, shape: alt.Shape, data: Data
) -> list[alt.Chart]:
    """Lines of times with a point and an interval for each row, and labels on their sides."""
    wall = alt.Y("wall", type="quantitative", **up)
    halos, labels = label_layers(base, wall, (datum["side"] for datum in data))
    return [
        base.mark_line(strokeWidth=1.6, opacity=0.55).encode(
            y=wall, color=colour, detail=alt.Detail(detail, type="nominal")
        ),
        *halos,  # below the points, so that they hide none
        base.mark_rule(strokeWidth=1.4).encode(
            y=alt.Y("low", type="quantitative", **up), y2=alt.Y2("high"), color=colour
        ),
        points(base).encode(y=wall, color=colour, shape=shape),
        *labels,
    ]


def points(base: alt.Chart) -> alt.Chart:
    """A point for each row. Its description, the field `about`, is what the page shows to who points at it."""
    about = alt.Description("about", type="nominal")
    chart: alt.Chart = base.mark_point(filled=True, size=75, opacity=1, aria=True).encode(description=about)
    return chart


#: Room beside the plot: for the axis with its title, and the space around a drawing.
_BESIDE = 90
_SYMBOL = 26  # in a legend: a symbol with its spaces


def plot_width(width: int) -> int:
    """At least what is left of a drawing's width for the plot, when all else has its place."""
    return width - _BESIDE


def finish(
    layers: list[alt.Chart], data: Data, *, title: str, subtitle: str, width: int, height: int, **others: Data
) -> dict[str, Any]:
    """The specification; `width` is that of the whole drawing, and `others` data that some layers refer to by name.

    Tests check it against Vega-Lite's schema. It is not done here, because it takes as long as drawing.
    """
    letters = round((width - 24) / (0.64 * FONT_SIZE))  # in bold
    chart = alt.layer(*layers).properties(
        width=width,
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        title=alt.TitleParams(text=wrap(title, letters), subtitle=wrap(subtitle, letters)),
    )
    spec = chart.to_dict(validate=False)
    return {**spec, "datasets": {**spec.get("datasets", {}), "rows": data, **others}}


#: Vega's expression for the label of a tick in seconds: `312 ms`, `1.5 s`, `48 µs`.
TIME_LABEL = (
    "datum.value >= 1 ? format(datum.value, ',~r') + ' s'"
    " : datum.value >= 1e-3 ? format(datum.value * 1e3, '~r') + ' ms'"
    " : datum.value == 0 ? '0' : format(datum.value * 1e6, '~r') + ' µs'"
)


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each decade; more within a single decade, only the ones over many decades."""
    digits = (1, 1.5, 2, 3, 4, 5, 7) if high / low < 10 else (1, 2, 5) if high / low < 1e3 else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in digits]
    return [value for value in ticks if low <= value <= high]


def log_place(value: float, low: float, high: float, length: float) -> float:
    """How far along a logarithmic axis of this length a value is."""
    return math.log(value / low) / math.log(high / low) * length


def log_domain(values: Iterable[float], margin: float = 1.25) -> tuple[float, float]:
    """A range with room for all values and a margin. It has at least two ticks, so that the axis has labels."""
    known = list(values)
    low, high = min(known) / margin, max(known) * margin
    while len(log_ticks(low, high)) < 2:
        low, high = low / 1.2, high * 1.2
    return low, high


def log_ratio(low: float, high: float, title: str) -> dict[str, alt.Scale | alt.Axis]:
    """`scale` and `axis` of a logarithmic axis of ratios."""
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    label = "format(datum.value, '~r') + '×'"
    return {"scale": scale, "axis": alt.Axis(values=log_ticks(low, high), labelExpr=label, title=title)}


def log_time(low: float, high: float, title: str) -> dict[str, alt.Scale | alt.Axis]:
    """`scale` and `axis` of a logarithmic axis in seconds."""
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    return {"scale": scale, "axis": alt.Axis(values=log_ticks(low, high), labelExpr=TIME_LABEL, title=title)}
