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
from rnnbench.analysis.row import Row, RowId, row_id
from rnnbench.report.charts.labels import Box, box_of, label_layers, place_labels, readable
from rnnbench.report.charts.marks import (
    ONCE,
    ROWS,
    Data,
    by_framework,
    finish,
    log_domain,
    log_place,
    log_ticks,
    plot_width,
    points,
)
from rnnbench.report.charts.theme import INK, LIMIT, WIDE, Look
from rnnbench.report.document import Panel

_HEIGHT = 400
_LEAST = 0.1  # eager batches: rows that compile for less are drawn at the left edge
_NEVER = "above 1: slower than eager, never pays"
_STEPS = 60  # segments of a line


def compiling(
    panel: Panel, looks: dict[str, Look], subtitle: str, break_evens: tuple[BreakEven, ...], width: int = WIDE
) -> dict[str, Any]:
    """A point for each compiled row whose program was also run eagerly."""
    rows = {row_id(row): row for row in panel.rows}
    data = [_datum(panel, rows, each) for each in break_evens]
    left, right = log_domain([_LEAST, 100.0, *(4 * datum["cost"] for datum in data)])
    bottom, top = log_domain([1.0, 0.5, *(datum[end] for datum in data for end in ("low", "high"))])
    lines, feet = _lines(left, right, bottom)
    _place_all(data, feet, (left, right, plot_width(width)), (bottom, top, _HEIGHT))
    across: dict[str, Any] = {
        "scale": alt.Scale(type="log", domain=[left, right], nice=False),
        "axis": alt.Axis(
            values=log_ticks(left, right),
            format=",~r",
            title="compile time, in eager batches of the program",
        ),
    }
    up: dict[str, Any] = {
        "scale": alt.Scale(type="log", domain=[bottom, top], nice=False),
        "axis": alt.Axis(values=log_ticks(bottom, top), format="~r", title="steady time, eager = 1"),
    }
    x, share = alt.X("cost", type="quantitative", **across), alt.Y("share", type="quantitative", **up)
    base = alt.Chart(ROWS).encode(x=x)
    colour, shape = by_framework((datum["framework"] for datum in data), looks, width)
    never = alt.Chart(ONCE).mark_text(align="left", baseline="top", dx=6, dy=4)
    never = never.encode(x=alt.value(0), y=alt.value(0), text=alt.TextValue(_NEVER))
    foot = alt.Chart(alt.NamedData("feet")).mark_text(baseline="bottom", dy=-5, align="right", dx=-5)
    line = alt.Chart(alt.NamedData("lines")).mark_line(color=LIMIT.light, strokeWidth=1, strokeDash=[4, 3])
    halos, labels = label_layers(base, share, (datum["side"] for datum in data))
    layers = [
        line.encode(x=x, y=share, detail=alt.Detail("batches", type="quantitative")),
        *readable(foot.encode(x=x, y=share, text=alt.Text("label", type="nominal")), LIMIT.light),
        alt.Chart(ONCE).mark_rule(color=INK.light, strokeWidth=1.2).encode(y=alt.YDatum(1.0)),
        *readable(never),
        *halos,
        base.mark_rule(strokeWidth=1.4).encode(
            y=alt.Y("low", type="quantitative", **up), y2=alt.Y2("high"), color=colour
        ),
        points(base).encode(y=share, color=colour, shape=shape),
        *labels,
    ]
    title = f"Does compiling pay: {panel.title}"
    return finish(layers, data, title=title, subtitle=subtitle, width=width, height=_HEIGHT, lines=lines, feet=feet)


def _datum(panel: Panel, rows: dict[RowId, Row], each: BreakEven) -> dict[str, Any]:
    eager, name = rows[each.eager].wall_s, panel.name(rows[each.row])
    assert eager is not None
    times = units.marked(units.times(each.against_eager.estimate), each.against_eager.uncertain)
    return {
        "framework": rows[each.row].framework,
        "about": f"{name}: {times} of eager, compiles for {units.seconds(each.cost_s)} longer",
        "cost": max(each.cost_s / eager, _LEAST),
        "share": each.against_eager.estimate,
        "low": each.against_eager.low,
        "high": each.against_eager.high,
        "label": units.marked(name, each.against_eager.uncertain),
    }


def _place_all(data: Data, feet: Data, x: tuple[float, float, float], y: tuple[float, float, float]) -> None:
    """Decide which labels there is room for: first those of the lines, then of the rows that win most.

    An axis is its lowest and highest value and its length. Feet without room lose their label.
    """
    left, right, width = x
    bottom, top, height = y

    def place(datum: dict[str, Any]) -> tuple[float, float]:
        across, up = log_place(datum["cost"], left, right, width), log_place(datum["share"], bottom, top, height)
        return across, height - up

    taken: list[Box] = [box_of("right", 0.0, 10.0, _NEVER)]
    for foot in feet:
        across, down = place(foot)
        box = box_of("left", across, down - 12, foot["label"])
        if box.left < 0 or any(map(box.overlaps, taken)):
            foot["label"] = ""
        else:
            taken.append(box)
    order = sorted(range(len(data)), key=lambda index: data[index]["share"])
    spots, texts = [place(datum) for datum in data], [datum["label"] for datum in data]
    sides = place_labels(spots, texts, order, width=width, height=height, taken=taken)
    for datum, side in zip(data, sides, strict=True):
        datum["side"] = side


def _lines(left: float, right: float, bottom: float) -> tuple[Data, Data]:
    """The points of the lines for 1, 10, 100, … batches, and the lower end of each, where its label is."""
    lines: Data = []
    feet: Data = []
    for power in range(math.ceil(math.log10(right)) + 1):
        batches = 10.0**power
        end = min(right, batches * (1 - bottom))  # where the line leaves the chart
        if end > left:
            costs = [left * (end / left) ** (step / _STEPS) for step in range(_STEPS + 1)]
            lines += [{"cost": cost, "share": 1 - cost / batches, "batches": batches} for cost in costs]
        if left < end < right:
            feet.append({"cost": end, "share": bottom, "label": f"pays after {batches:,.0f}"})
    return lines, feet
