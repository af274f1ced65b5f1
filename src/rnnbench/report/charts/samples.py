"""The samples of one row in the order they were taken: drift, steps and outliers that an interval hides."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from rnnbench.analysis.rows import Row
from rnnbench.domain.result import Launch
from rnnbench.report.charts.axes import TIME_LABEL
from rnnbench.report.charts.marks import ROWS, by_framework, finish
from rnnbench.report.charts.theme import MUTED, Look
from rnnbench.report.panel import Panel


def samples(
    panel: Panel, row: Row, launches: Sequence[Launch], looks: dict[str, Look], subtitle: str
) -> dict[str, Any]:
    """Each block where it ended on the clock, launch after launch, with the wall time across them."""
    data: list[dict[str, Any]] = []
    clock = 0.0
    for number, launch in enumerate(launches):
        for sample in launch.samples:
            clock += sample.seconds
            time = sample.seconds / sample.batches
            data.append({"clock": clock, "time": time, "launch": number, "wall": row.wall_s})
    colours, _ = by_framework([row.framework], looks)
    (colour,) = colours.range
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
    return finish(layers, data, title=title, subtitle=subtitle, width=560, height=220)
