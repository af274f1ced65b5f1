"""History: the time of a batch over the versions of a framework, for systems that were run in several."""

from typing import Any

import altair as alt

from rnnbench.analysis.rows import Row
from rnnbench.domain.system import version_key
from rnnbench.environments.environment import Environment
from rnnbench.report import units
from rnnbench.report.charts.axes import log_domain, log_time
from rnnbench.report.charts.labels import beside
from rnnbench.report.charts.marks import ROWS, ends, finish, point, series, wall_of
from rnnbench.report.charts.theme import Look
from rnnbench.report.panel import Panel

_VERSION = 84  # points between two versions
_HEIGHT = 340


def with_history(panel: Panel) -> list[Row]:
    """The verified rows whose system is there in more than one environment."""
    places: dict[str, set[str]] = {}
    for row in panel.verified:
        places.setdefault(row.system, set()).add(row.environment)
    return [row for row in panel.verified if len(places[row.system]) > 1]


def history(
    panel: Panel, looks: dict[str, Look], subtitle: str, environments: dict[str, Environment]
) -> dict[str, Any]:
    """A line for each system over the environments from old to new, named where it ends."""
    rows = with_history(panel)
    order = sorted(
        {row.environment for row in rows},
        key=lambda name: (environments[name].framework, version_key(environments[name].version), name),
    )
    newest = {row.system: row for row in sorted(rows, key=lambda row: order.index(row.environment))}
    low, high = log_domain(ends(rows))
    places: dict[str, float] = {}
    for environment in order:
        last = sorted((row for row in newest.values() if row.environment == environment), key=wall_of, reverse=True)
        found = beside([wall_of(row) for row in last], low, high, _HEIGHT)
        places.update({row.system: place for row, place in zip(last, found, strict=True)})
    data = [
        {
            **point(row),
            "environment": row.environment,
            "system": row.system,
            "place": places[row.system],
            "label": f"{row.system} · {units.seconds(row.wall_s)}" if newest[row.system] is row else "",
        }
        for row in rows
    ]
    base = alt.Chart(ROWS).encode(
        x=alt.X(
            "environment",
            type="nominal",
            title=None,
            scale=alt.Scale(type="point", padding=0.5, domain=order),
            axis=alt.Axis(labelAngle=-30, grid=True),
        )
    )
    layers = series(
        base,
        log_time(low, high, "time of one batch"),
        detail="system",
        looks=looks,
        names=(row.framework for row in rows),
    )
    title = f"From version to version: {panel.title}"
    return finish(layers, data, title=title, subtitle=subtitle, width=_VERSION * max(5, len(order)), height=_HEIGHT)
