"""What charts are put together from: colours by framework, text that stays readable on lines, the finished spec."""

from collections.abc import Iterable
from typing import Any

import altair as alt

from rnnbench.analysis.rows import Row
from rnnbench.report.charts.theme import GROUND, MUTED, Look

Data = list[dict[str, Any]]

#: What layers refer to as their data. It is put in last: Altair would copy it with every step.
ROWS = alt.NamedData("rows")

#: For a layer that is drawn once, whatever the rows are.
ONCE = alt.InlineData(values=[{}])


def by_framework(names: Iterable[str], looks: dict[str, Look]) -> tuple[alt.Scale, alt.Scale]:
    """The scales of colour and of shape."""
    domain = sorted(set(names))
    return (
        alt.Scale(domain=domain, range=[looks[name].tone.light for name in domain]),
        alt.Scale(domain=domain, range=[looks[name].shape for name in domain]),
    )


def readable(text: alt.Chart, colour: str = MUTED.light) -> list[alt.Chart]:
    """A chart of text twice: first as a broad line of the ground's colour, so that nothing runs through it."""
    halo = text.copy(deep=True)
    halo.mark = {**text.mark.to_dict(), "stroke": GROUND.light, "strokeWidth": 4, "color": GROUND.light, "aria": False}
    text.mark["color"] = colour
    return [halo, text]


def wall_of(row: Row) -> float:
    assert row.wall_s is not None
    return row.wall_s


def ends(rows: Iterable[Row]) -> list[float]:
    """The ends of the rows' intervals: an axis has room for them."""
    return [time for row in rows for time in (row.wall_low_s, row.wall_high_s) if time]


def point(row: Row) -> dict[str, Any]:
    """What every drawing of a row's time needs."""
    return {"framework": row.framework, "wall": row.wall_s, "low": row.wall_low_s, "high": row.wall_high_s}


def series(
    base: alt.Chart, up: dict[str, Any], *, detail: str, looks: dict[str, Look], names: Iterable[str]
) -> list[alt.Chart]:
    """Lines of times with a point, an interval and a label at each row; the labels stand at `place`."""
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
        halo,  # beneath the points: it must not hide one
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

    It is not checked against Vega-Lite's schema here, which takes as long as drawing: tests do that.
    """
    chart = alt.layer(*layers).properties(
        width=width, height=height, title=alt.TitleParams(text=title, subtitle=subtitle)
    )
    spec = chart.to_dict(validate=False)
    return {**spec, "datasets": {**spec.get("datasets", {}), "rows": data, **others}}
