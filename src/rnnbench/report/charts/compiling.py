"""Compile time against steady time: whether a compiled execution pays, and after how many batches.

The unit of both axes is one batch of the same program run eagerly, so one set of lines serves every framework and
granularity: a row that compiles for `x` eager batches and then takes the share `y` of an eager batch has made up
for it after n = x / (1 - y) batches.
"""

import math
from typing import Any

import altair as alt

from rnnbench import units
from rnnbench.analysis.gap import BreakEven
from rnnbench.analysis.row import row_id
from rnnbench.report.charts.marks import (
    ONCE,
    ROWS,
    Data,
    by_framework,
    columns,
    finish,
    label_positions,
    log_domain,
    log_ticks,
    readable,
)
from rnnbench.report.charts.theme import INK, LIMIT, Look
from rnnbench.report.document import Panel

_WIDTH, _HEIGHT = 640, 380
_LEAST = 0.1  # eager batches: rows that compile for less are drawn at the left edge
_LABEL = 130  # points: about the width of a label
_STEPS = 60  # segments of a line


def compiling(
    panel: Panel, looks: dict[str, Look], subtitle: str, break_evens: tuple[BreakEven, ...]
) -> dict[str, Any]:
    """A point for each compiled row whose program was also run eagerly."""
    rows = {row_id(row): row for row in panel.rows}
    data: Data = []
    for each in break_evens:
        eager = rows[each.eager].wall_s
        assert eager is not None
        data.append(
            {
                "framework": rows[each.row].framework,
                "cost": max(each.cost_s / eager, _LEAST),
                "share": each.against_eager.estimate,
                "low": each.against_eager.low,
                "high": each.against_eager.high,
                "label": units.marked(panel.name(rows[each.row]).partition("/")[2], each.against_eager.uncertain),
            }
        )
    left, right = log_domain([_LEAST, 100.0, *(4 * datum["cost"] for datum in data)])
    bottom, top = log_domain([1.0, 0.5, *(datum[end] for datum in data for end in ("low", "high"))])
    positions = [math.log(datum["cost"] / left) / math.log(right / left) * _WIDTH for datum in data]
    for column in columns(positions, _LABEL):
        ordered = sorted((data[index] for index in column), key=lambda datum: -datum["share"])
        places = label_positions([datum["share"] for datum in ordered], bottom, top, _HEIGHT)
        for datum, place in zip(ordered, places, strict=True):
            datum["place"] = place
    colours, shapes = by_framework((datum["framework"] for datum in data), looks)
    colour = alt.Color("framework", type="nominal", scale=colours)
    across: dict[str, Any] = {
        "scale": alt.Scale(type="log", domain=[left, right], nice=False),
        "axis": alt.Axis(
            values=log_ticks(left, right),
            format=",~r",
            title="compile time, in batches of the same program run eagerly",
        ),
    }
    up: dict[str, Any] = {
        "scale": alt.Scale(type="log", domain=[bottom, top], nice=False),
        "axis": alt.Axis(values=log_ticks(bottom, top), format="~r", title="steady time, eager = 1"),
    }
    x = alt.X("cost", type="quantitative", **across)
    base = alt.Chart(ROWS).encode(x=x)
    share = alt.Y("share", type="quantitative", **up)
    text = alt.Text("label", type="nominal")
    label = base.mark_text(align="left", dx=10).encode(y=alt.Y("place", type="quantitative", **up), text=text)
    never = alt.Chart(ONCE).mark_text(align="left", baseline="top", dx=6, dy=4)
    never = never.encode(x=alt.value(0), y=alt.value(0), text=alt.TextValue("above 1: slower than eager, never pays"))
    halo, label = readable(label)
    foot = alt.Chart(alt.NamedData("feet")).mark_text(baseline="bottom", dy=-5, align="right", dx=-5)
    line = alt.Chart(alt.NamedData("lines")).mark_line(color=LIMIT.light, strokeWidth=1, strokeDash=[4, 3])
    layers = [
        line.encode(x=x, y=share, detail=alt.Detail("batches", type="quantitative")),
        *readable(foot.encode(x=x, y=share, text=text), LIMIT.light),
        alt.Chart(ONCE).mark_rule(color=INK.light, strokeWidth=1.2).encode(y=alt.YDatum(1.0)),
        *readable(never),
        halo,
        base.mark_rule(strokeWidth=1.4).encode(
            y=alt.Y("low", type="quantitative", **up), y2=alt.Y2("high"), color=colour
        ),
        base.mark_point(filled=True, size=75, opacity=1).encode(
            y=share, color=colour, shape=alt.Shape("framework", type="nominal", scale=shapes)
        ),
        label,
    ]
    title = f"Does compiling pay: {panel.title}"
    points, feet = _lines(left, right, bottom)
    return finish(layers, data, title=title, subtitle=subtitle, width=_WIDTH, height=_HEIGHT, lines=points, feet=feet)


def _lines(left: float, right: float, bottom: float) -> tuple[Data, Data]:
    """The points of the lines for 1, 10, 100, … batches, and the lower end of each, where its label is."""
    points: Data = []
    feet: Data = []
    for power in range(math.ceil(math.log10(right)) + 1):
        batches = 10.0**power
        end = min(right, batches * (1 - bottom))  # where the line leaves the chart
        if end > left:
            costs = [left * (end / left) ** (step / _STEPS) for step in range(_STEPS + 1)]
            points += [{"cost": cost, "share": 1 - cost / batches, "batches": batches} for cost in costs]
        if left < end < right:
            feet.append({"cost": end, "share": bottom, "label": f"pays after {batches:,.0f}"})
    return points, feet
