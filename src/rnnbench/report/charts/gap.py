"""The gap: how much one operator does against the time of a batch, and the limit of the machine under it."""

import math
from typing import Any

import altair as alt

from rnnbench.analysis.rows import Row
from rnnbench.domain.system import GRANULARITIES
from rnnbench.report import units
from rnnbench.report.charts.axes import log_domain, log_time
from rnnbench.report.charts.labels import LINE, spread
from rnnbench.report.charts.marks import ONCE, ROWS, Data, by_framework, finish, readable
from rnnbench.report.charts.theme import LIMIT, Look
from rnnbench.report.panel import Panel

_COLUMN = 176  # points, room for a label beside each point


def gap(panel: Panel, looks: dict[str, Look], subtitle: str, limit_s: float | None) -> dict[str, Any]:
    """A line for each framework and execution over the granularities it has; verified rows alone."""
    rows = [row for row in panel.timed if row.status == "verified"]
    present = {row.granularity for row in rows}
    columns = [name for name in (*GRANULARITIES, *sorted(present - set(GRANULARITIES))) if name in present]
    members = [[row for row in rows if row.granularity == name] for name in columns]
    low, high = log_domain([row.wall_s or 0.0 for row in rows] + ([limit_s] if limit_s else []))
    height = max(340, LINE * (max(map(len, members)) + 2))
    data = [datum for column in members for datum in _column(panel, column, low, high, height)]
    colours, shapes = by_framework((row.framework for row in rows), looks)
    colour = alt.Color("framework", type="nominal", scale=colours)
    up = log_time(low, high, "time of one batch")
    wall = alt.Y("wall", type="quantitative", **up)
    base = alt.Chart(ROWS).encode(
        x=alt.X(
            "granularity",
            type="nominal",
            title="granularity: how much one operator does →",
            scale=alt.Scale(type="point", padding=0.5, domain=columns),
            axis=alt.Axis(labelAngle=0, labelFontSize=13, grid=True),
        )
    )
    label = base.mark_text(align="left", dx=10).encode(
        y=alt.Y("place", type="quantitative", **up), text=alt.Text("label", type="nominal")
    )
    layers = [
        base.mark_line(strokeWidth=1.6, opacity=0.55).encode(
            y=wall, color=colour, detail=alt.Detail("series", type="nominal")
        ),
        base.mark_rule(strokeWidth=1.4).encode(
            y=alt.Y("low", type="quantitative", **up), y2=alt.Y2("high"), color=colour
        ),
        base.mark_point(filled=True, size=75, opacity=1).encode(
            y=wall, color=colour, shape=alt.Shape("framework", type="nominal", scale=shapes)
        ),
        *readable(label),
    ]
    if limit_s:
        layers += _limit(limit_s)
    return finish(
        layers,
        data,
        title=f"What flexibility costs: {panel.title}",
        subtitle=subtitle,
        width=_COLUMN * max(2, len(columns)),
        height=height,
    )


def _limit(limit_s: float) -> list[alt.Chart]:
    base = alt.Chart(ONCE).encode(y=alt.YDatum(limit_s))
    text = alt.TextValue(f"limit {units.seconds(limit_s)}")
    label = base.mark_text(align="left", baseline="bottom", dx=4, dy=-3).encode(x=alt.XValue(0), text=text)
    return [base.mark_rule(color=LIMIT.light, strokeWidth=1.5, strokeDash=[6, 4]), *readable(label, LIMIT.light)]


def _column(panel: Panel, rows: list[Row], low: float, high: float, height: int) -> Data:
    """One granularity's points, their labels moved apart where they would cover each other."""
    ordered = sorted(rows, key=lambda row: row.wall_s or 0.0, reverse=True)
    span = math.log(high / low)
    wanted = [math.log(high / (row.wall_s or high)) / span * height for row in ordered]  # points from the top
    return [
        {
            "granularity": row.granularity,
            "framework": row.framework,
            "series": f"{row.framework} {row.execution} {row.environment}",
            "wall": row.wall_s,
            "low": row.wall_low_s,
            "high": row.wall_high_s,
            "place": high * math.exp(-place / height * span),
            "label": f"{_said(panel, row)} · {units.seconds(row.wall_s)}",
        }
        for row, place in zip(ordered, spread(wanted, LINE, height), strict=True)
    ]


def _said(panel: Panel, row: Row) -> str:
    """`compile`, or `compile @ pytorch-2.9.1` where versions are compared."""
    return panel.name(row).removeprefix(f"{row.framework}/{row.granularity}/")
