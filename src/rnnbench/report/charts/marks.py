"""Parts that charts share: colours by framework, readable labels, logarithmic axes, the finished specification."""

import math
from collections.abc import Iterable
from typing import Any

import altair as alt

from rnnbench import units
from rnnbench.analysis.row import Row
from rnnbench.report.charts.theme import GROUND, MUTED, Look

Data = list[dict[str, Any]]

#: The name of the layers' data. The data itself is added last, because Altair would copy it in every step.
ROWS = alt.NamedData("rows")

#: For a layer that is drawn once, independent of the rows.
ONCE = alt.InlineData(values=[{}])


def by_framework(names: Iterable[str], looks: dict[str, Look]) -> tuple[alt.Scale, alt.Scale]:
    """The scales of colour and of shape."""
    domain = sorted(set(names))
    return (
        alt.Scale(domain=domain, range=[looks[name].tone.light for name in domain]),
        alt.Scale(domain=domain, range=[looks[name].shape for name in domain]),
    )


def readable(text: alt.Chart, colour: str = MUTED.light) -> list[alt.Chart]:
    """The text twice: first as a thick outline in the background's colour, so that lines do not cross it."""
    halo = text.copy(deep=True)
    halo.mark = {**text.mark.to_dict(), "stroke": GROUND.light, "strokeWidth": 4, "color": GROUND.light, "aria": False}
    text.mark["color"] = colour
    return [halo, text]


def wall_of(row: Row) -> float:
    assert row.wall_s is not None
    return row.wall_s


def time_label(row: Row) -> str:
    """`312 ms`, with its mark where it is uncertain."""
    return units.marked(units.seconds(row.wall_s), row.uncertain)


def ends(rows: Iterable[Row]) -> list[float]:
    """The ends of the rows' intervals, for the domain of an axis."""
    return [time for row in rows for time in (row.wall_low_s, row.wall_high_s) if time]


def point(row: Row) -> dict[str, Any]:
    """The fields that every chart of a row's time needs."""
    return {"framework": row.framework, "wall": row.wall_s, "low": row.wall_low_s, "high": row.wall_high_s}


def series(
    base: alt.Chart, up: dict[str, Any], *, detail: str, looks: dict[str, Look], names: Iterable[str]
) -> list[alt.Chart]:
    """Lines of times with a point, an interval and a label for each row; the labels are at `place`."""
    colours, shapes = by_framework(names, looks)
    colour = alt.Color("framework", type="nominal", scale=colours)
    wall = alt.Y("wall", type="quantitative", **up)
    label = base.mark_text(align="left", dx=10).encode(
        y=alt.Y("place", type="quantitative", **up), text=alt.Text("label", type="nominal")
    )
    halo, label = readable(label)
    return [
        base.mark_line(strokeWidth=1.6, opacity=0.55).encode(
            y=wall, color=colour, detail=alt.Detail(detail, type="nominal")
        ),
        halo,  # below the points, so that it hides none
        base.mark_rule(strokeWidth=1.4).encode(
            y=alt.Y("low", type="quantitative", **up), y2=alt.Y2("high"), color=colour
        ),
        base.mark_point(filled=True, size=75, opacity=1).encode(
            y=wall, color=colour, shape=alt.Shape("framework", type="nominal", scale=shapes)
        ),
        label,
    ]


def finish(
    layers: list[alt.Chart], data: Data, *, title: str, subtitle: str, width: int, height: int, **others: Data
) -> dict[str, Any]:
    """The specification; `others` is data that some layers refer to by name.

    Tests check it against Vega-Lite's schema. It is not done here, because it takes as long as drawing.
    """
    chart = alt.layer(*layers).properties(
        width=width, height=height, title=alt.TitleParams(text=title, subtitle=subtitle)
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


LINE = 13.0  # points between two labels, at least


def label_positions(values: list[float], low: float, high: float, height: float) -> list[float]:
    """Where on a logarithmic axis the labels of these values go, largest first; they are moved apart if needed."""
    span = math.log(high / low)
    wanted = [math.log(high / value) / span * height for value in values]  # points from the top
    return [high * math.exp(-place / height * span) for place in spread_apart(wanted, LINE, height)]


def columns(places: list[float], width: float) -> list[list[int]]:
    """Groups of indexes whose labels could overlap: neighbours in a group are closer than a label's width."""
    groups: list[list[int]] = []
    for index in sorted(range(len(places)), key=lambda index: places[index]):
        if groups and places[index] - places[groups[-1][-1]] < width:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def spread_apart(wanted: list[float], least: float, height: float) -> list[float]:
    """Positions at least `least` apart, each as near as possible to the wanted one; `wanted` is ascending.

    Neighbours that would overlap are joined into a block, which is placed at the mean of what its members want.
    """
    blocks: list[list[float]] = []  # for each member of a block, where it wants the block to begin
    starts: list[float] = []
    for position in wanted:
        blocks.append([position])
        starts.append(position)
        while len(blocks) > 1 and starts[-2] + least * len(blocks[-2]) > starts[-1]:
            starts.pop()
            last = blocks.pop()
            before = least * len(blocks[-1])
            blocks[-1] += [member - before for member in last]
            most = height - least * (len(blocks[-1]) - 1)
            starts[-1] = max(min(sum(blocks[-1]) / len(blocks[-1]), most), 0.0)
    return [start + least * index for start, block in zip(starts, blocks, strict=True) for index in range(len(block))]
