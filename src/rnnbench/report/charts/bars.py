"""Bars of the time of one batch with its interval and ratio, coloured by framework: the picture of seed 002."""

from typing import Any

import altair as alt

from rnnbench.analysis.rows import Row
from rnnbench.report import units
from rnnbench.report.charts.axes import TIME_LABEL
from rnnbench.report.charts.marks import ROWS, by_framework, finish, point, readable
from rnnbench.report.charts.theme import GROUND, INK, Look
from rnnbench.report.panel import Panel

_ROW = 21  # points a bar takes, its gap included


def bars(panel: Panel, looks: dict[str, Look], subtitle: str) -> dict[str, Any]:
    """Fastest first; rows that compute something else follow as outlines, and their ratio is not said."""
    wrong = [row for row in panel.below if row.wall_s is not None]
    data = [_datum(panel, row) for row in (*panel.timed, *wrong)]
    colours, _ = by_framework((datum["framework"] for datum in data), looks)
    room = 1.22 * max(datum["high"] for datum in data)
    base = alt.Chart(ROWS).encode(
        y=alt.Y("name", type="nominal", sort=None, title=None, axis=alt.Axis(ticks=False, domain=False, labelPadding=8))
    )
    time = alt.X(
        "wall",
        type="quantitative",
        title="time of one batch",
        scale=alt.Scale(domain=[0, room], nice=False),
        axis=alt.Axis(labelExpr=TIME_LABEL, tickCount=6),
    )
    low, high = alt.X("low", type="quantitative"), alt.X("high", type="quantitative")
    colour = alt.Color("framework", type="nominal", scale=colours)
    right = base.transform_filter("!datum.wrong").mark_bar(height=13).encode(x=time, color=colour)
    outlined = (
        base.transform_filter("datum.wrong")
        .mark_bar(height=12, fill=GROUND.light, strokeWidth=1.2, strokeDash=[3, 2])
        .encode(x=time, stroke=alt.Stroke("framework", type="nominal", scale=colours))
    )
    whisker = base.mark_rule(color=INK.light, strokeWidth=1.4).encode(x=low, x2=alt.X2("high"))
    end = base.mark_tick(color=INK.light, thickness=1.4, height=7)
    label = base.mark_text(align="left", dx=7).encode(x=high, text=alt.Text("label", type="nominal"))
    layers = [right, outlined, whisker, end.encode(x=low), end.encode(x=high), *readable(label)]
    return finish(
        layers, data, title=f"Time of one batch: {panel.title}", subtitle=subtitle, width=560, height=_ROW * len(data)
    )


def _datum(panel: Panel, row: Row) -> dict[str, Any]:
    wrong = row.status == "wrong"
    said = row.status if row.ratio is None or wrong else units.times(row.ratio)
    return {
        **point(row),
        "name": panel.name(row),
        "wrong": wrong,
        "label": f"{units.seconds(row.wall_s)} · {said}{' ~' if row.noisy else ''}",
    }
