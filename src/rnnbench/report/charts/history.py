"""History: the time of a batch over the versions of a framework, for systems that were run in several."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from rnnbench.analysis.rows import Row
from rnnbench.domain.system import version_key
from rnnbench.environments.environment import Environment
from rnnbench.report import units
from rnnbench.report.charts.axes import log_domain, log_time
from rnnbench.report.charts.marks import ROWS, by_framework, finish, readable
from rnnbench.report.charts.theme import Look

_VERSION = 84  # points between two versions


def with_history(rows: Sequence[Row]) -> list[Row]:
    """The verified rows whose system is there in more than one environment."""
    timed = [row for row in rows if row.status == "verified" and row.wall_s is not None]
    places: dict[str, set[str]] = {}
    for row in timed:
        places.setdefault(row.system, set()).add(row.environment)
    return [row for row in timed if len(places[row.system]) > 1]


def history(
    title: str, subtitle: str, rows: Sequence[Row], environments: dict[str, Environment], looks: dict[str, Look]
) -> dict[str, Any]:
    """A line for each system; versions from old to new, the framework's name before each."""
    order = sorted(
        {row.environment for row in rows},
        key=lambda name: (environments[name].framework, version_key(environments[name].version), name),
    )
    last = {row.system: max(order.index(one.environment) for one in rows if one.system == row.system) for row in rows}
    data = [
        {
            "environment": row.environment,
            "framework": row.framework,
            "system": row.system,
            "wall": row.wall_s,
            "low": row.wall_low_s,
            "high": row.wall_high_s,
            "label": f"{row.granularity}/{row.execution} · {units.seconds(row.wall_s)}"
            if order.index(row.environment) == last[row.system]
            else "",
        }
        for row in rows
    ]
    low, high = log_domain(row.wall_s or 0.0 for row in rows)
    up = log_time(low, high, "time of one batch")
    colours, shapes = by_framework((row.framework for row in rows), looks)
    colour = alt.Color("framework", type="nominal", scale=colours)
    wall = alt.Y("wall", type="quantitative", **up)
    base = alt.Chart(ROWS).encode(
        x=alt.X(
            "environment",
            type="nominal",
            title=None,
            scale=alt.Scale(type="point", padding=0.5, domain=order),
            axis=alt.Axis(labelAngle=-30, grid=True),
        )
    )
    label = base.mark_text(align="left", dx=10).encode(y=wall, text=alt.Text("label", type="nominal"))
    layers = [
        base.mark_line(strokeWidth=1.6, opacity=0.55).encode(
            y=wall, color=colour, detail=alt.Detail("system", type="nominal")
        ),
        base.mark_rule(strokeWidth=1.4).encode(
            y=alt.Y("low", type="quantitative", **up), y2=alt.Y2("high"), color=colour
        ),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            y=wall, color=colour, shape=alt.Shape("framework", type="nominal", scale=shapes)
        ),
        *readable(label),
    ]
    return finish(layers, data, title=title, subtitle=subtitle, width=_VERSION * max(5, len(order)), height=340)
