"""Two charts of times: bars of all rows, as in Braun (2018), and the samples of one row in order."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from rnnbench import units
from rnnbench.analysis.row import Row
from rnnbench.domain.result import Launch
from rnnbench.report.charts.labels import readable
from rnnbench.report.charts.marks import ROWS, TIME_LABEL, by_framework, finish, point, time_label
from rnnbench.report.charts.theme import GROUND, INK, MUTED, WIDE, Look
from rnnbench.report.document import Panel

_ROW = 21  # points for one bar and the space after it


def bars(panel: Panel, looks: dict[str, Look], subtitle: str) -> dict[str, Any]:
    """Fastest first. Rows that are wrong or above the limit follow as outlines, without a ratio."""
    wrong = [row for row in panel.unranked if row.wall_s is not None]
    data = [_datum(panel, row) for row in (*panel.ranked, *wrong)]
    colour, _ = by_framework((datum["framework"] for datum in data), looks, WIDE)
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
    filled = base.transform_filter("!datum.wrong").mark_bar(height=13).encode(x=time, color=colour)
    outlined = (
        base.transform_filter("datum.wrong")
        .mark_bar(height=12, fill=GROUND.light, strokeWidth=1.2, strokeDash=[3, 2])
        .encode(x=time, stroke=alt.Stroke("framework", type="nominal", scale=colour["scale"], legend=colour["legend"]))
    )
    whisker = base.mark_rule(color=INK.light, strokeWidth=1.4).encode(x=low, x2=alt.X2("high"))
    end = base.mark_tick(color=INK.light, thickness=1.4, height=7)
    label = base.mark_text(align="left", dx=7).encode(x=high, text=alt.Text("label", type="nominal"))
    layers = [filled, outlined, whisker, end.encode(x=low), end.encode(x=high), *readable(label)]
    return finish(
        layers, data, title=f"Time of one batch: {panel.title}", subtitle=subtitle, width=WIDE, height=_ROW * len(data)
    )


def _datum(panel: Panel, row: Row) -> dict[str, Any]:
    wrong = row.status == "wrong" or row.above_limit  # drawn as an outline: not compared
    ratio = row.status if row.ratio is None or wrong else units.marked(units.times(row.ratio), row.ratio_uncertain)
    unsteady = " · not steady" if row.steady is False else ""
    return {
        **point(row, panel.name(row)),
        "name": panel.name(row),
        "wrong": wrong,
        "label": f"{time_label(row)} · {ratio}{unsteady}{' ~' if row.noisy else ''}",
    }


def samples(
    panel: Panel, row: Row, launches: Sequence[Launch], looks: dict[str, Look], subtitle: str
) -> dict[str, Any]:
    """Every block at the timed seconds at its end, launch after launch, with a line at the wall time."""
    data: list[dict[str, Any]] = []
    clock = 0.0
    for number, launch in enumerate(launches):
        for sample in launch.samples:
            clock += sample.seconds
            time = sample.seconds / sample.batches
            data.append({"clock": clock, "time": time, "launch": number, "wall": row.wall_s})
    colour = looks[row.framework].tone.light
    base = alt.Chart(ROWS).encode(
        x=alt.X("clock", type="quantitative", title="timed so far", axis=alt.Axis(labelExpr=TIME_LABEL)),
        y=alt.Y(
            "time",
            type="quantitative",
            title="time of one batch",
            scale=alt.Scale(zero=False),
            axis=alt.Axis(labelExpr=TIME_LABEL),
        ),
    )
    wall = (
        alt.Chart(ROWS)
        .mark_rule(color=MUTED.light, strokeDash=[5, 4], strokeWidth=1.2)
        .encode(y=alt.Y("wall", type="quantitative", aggregate="mean"))
    )
    line = base.mark_line(color=colour, strokeWidth=1.4, opacity=0.55).encode(
        detail=alt.Detail("launch", type="nominal")
    )
    title = f"Samples of {panel.name(row)}: {panel.title}"
    layers = [wall, line, base.mark_point(color=colour, filled=True, size=45, opacity=1)]
    return finish(layers, data, title=title, subtitle=subtitle, width=WIDE, height=220)
