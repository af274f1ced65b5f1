"""The gap: the time of a batch over granularity (how much one operator does), and the machine's limit."""

from typing import Any

import altair as alt

from rnnbench import units
from rnnbench.analysis.row import Row
from rnnbench.domain.system import GRANULARITIES
from rnnbench.report.charts.marks import (
    LINE,
    ONCE,
    ROWS,
    Data,
    ends,
    finish,
    label_positions,
    log_domain,
    log_time,
    point,
    readable,
    series,
    time_label,
    wall_of,
)
from rnnbench.report.charts.theme import LIMIT, Look
from rnnbench.report.document import Panel

_COLUMN = 176  # points: room for a label at each point


def gap(panel: Panel, looks: dict[str, Look], subtitle: str, limit_s: float | None) -> dict[str, Any]:
    """A line for each framework and execution over its granularities; verified rows only."""
    rows = panel.verified
    present = {row.granularity for row in rows}
    columns = [name for name in (*GRANULARITIES, *sorted(present - set(GRANULARITIES))) if name in present]
    members = [[row for row in rows if row.granularity == name] for name in columns]
    low, high = log_domain(ends(rows) + ([limit_s] if limit_s else []))
    height = max(340, round(LINE) * (max(map(len, members)) + 2))
    data = [datum for column in members for datum in _column(panel, column, low, high, height)]
    up = log_time(low, high, "time of one batch")
    base = alt.Chart(ROWS).encode(
        x=alt.X(
            "granularity",
            type="nominal",
            title="granularity: how much one operator does →",
            scale=alt.Scale(type="point", padding=0.5, domain=columns),
            axis=alt.Axis(labelAngle=0, labelFontSize=13, grid=True),
        )
    )
    layers = series(base, up, detail="series", looks=looks, names=(row.framework for row in rows))
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
    label = base.mark_text(align="left", baseline="bottom", dx=4, dy=-3).encode(x=alt.value(0), text=text)
    return [base.mark_rule(color=LIMIT.light, strokeWidth=1.5, strokeDash=[6, 4]), *readable(label, LIMIT.light)]


def _column(panel: Panel, rows: list[Row], low: float, high: float, height: int) -> Data:
    """The points of one granularity, slowest first."""
    ordered = sorted(rows, key=wall_of, reverse=True)
    places = label_positions([wall_of(row) for row in ordered], low, high, height)
    return [
        {
            **point(row),
            "granularity": row.granularity,
            "series": f"{row.framework} {row.execution} {row.environment}",
            "place": place,
            "label": f"{_execution(panel, row)} · {time_label(row)}",
        }
        for row, place in zip(ordered, places, strict=True)
    ]


def _execution(panel: Panel, row: Row) -> str:
    """`compile`, or `compile @ pytorch-2.9.1` where versions are compared."""
    return panel.name(row).removeprefix(f"{row.framework}/{row.granularity}/")
