"""The gap: the time of a batch over granularity (how much one operator does), and the machine's limit."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from rnnbench import units
from rnnbench.analysis.row import Row, is_loop
from rnnbench.domain.system import GRANULARITIES
from rnnbench.report.charts.labels import Box, box_of, place_labels, readable
from rnnbench.report.charts.marks import (
    ONCE,
    ROWS,
    by_framework,
    ends,
    finish,
    log_domain,
    log_place,
    log_time,
    plot_width,
    point,
    series,
    time_label,
    wall_of,
)
from rnnbench.report.charts.theme import LIMIT, WIDE, Look
from rnnbench.report.document import Panel

_HEIGHT = 400
_LABELS = 24  # more say nothing, even where they have room


def gap(
    panel: Panel, looks: dict[str, Look], subtitle: str, limit_s: float | None, width: int = WIDE
) -> dict[str, Any]:
    """A line for each framework and execution over its granularities; verified rows only."""
    rows = panel.verified
    present = {row.granularity for row in rows}
    columns = [name for name in (*GRANULARITIES, *sorted(present - set(GRANULARITIES))) if name in present]
    low, high = log_domain(ends(rows) + ([limit_s] if limit_s else []))
    room = plot_width(width)
    places = [
        (
            room * (columns.index(row.granularity) + 0.5) / len(columns),
            _HEIGHT - log_place(wall_of(row), low, high, _HEIGHT),
        )
        for row in rows
    ]
    labels = [f"{row.framework} {_execution(panel, row)} · {time_label(row)}" for row in rows]
    taken = [_limit_box(limit_s, _HEIGHT - log_place(limit_s, low, high, _HEIGHT))] if limit_s else []
    important = _importance(rows, columns)[:_LABELS]
    sides = place_labels(places, labels, important, width=room, height=_HEIGHT, taken=taken)
    data = [
        {
            **point(row, panel.name(row)),
            "granularity": row.granularity,
            "series": f"{row.framework} {row.execution} {row.environment}",
            "side": side,
            "label": label,
        }
        for row, side, label in zip(rows, sides, labels, strict=True)
    ]
    base = alt.Chart(ROWS).encode(
        x=alt.X(
            "granularity",
            type="nominal",
            title="granularity: how much one operator does →",
            scale=alt.Scale(type="point", padding=0.5, domain=columns),
            axis=alt.Axis(labelAngle=0, grid=True),
        )
    )
    colour, shape = by_framework((row.framework for row in rows), looks, width)
    up = log_time(low, high, "time of one batch")
    layers = series(base, up, detail="series", colour=colour, shape=shape, data=data)
    if limit_s:
        layers += _limit(limit_s)
    title = f"What flexibility costs: {panel.title}"
    return finish(layers, data, title=title, subtitle=subtitle, width=width, height=_HEIGHT)


def _importance(rows: Sequence[Row], columns: Sequence[str]) -> list[int]:
    """The front of speed and flexibility first, then the loops, then the others, each fastest first.

    On the front are the rows that no row of the same or a finer granularity beats.
    """
    front: set[int] = set()
    least = float("inf")
    for column in columns:
        members = [index for index, row in enumerate(rows) if row.granularity == column]
        best = min(members, key=lambda index: wall_of(rows[index]))
        if wall_of(rows[best]) < least:
            front.add(best)
            least = wall_of(rows[best])
    return sorted(
        range(len(rows)), key=lambda index: (index not in front, not is_loop(rows[index]), wall_of(rows[index]))
    )


def _limit_text(limit_s: float) -> str:
    return f"limit {units.seconds(limit_s)}"


def _limit_box(limit_s: float, y: float) -> Box:
    """The room for the label on the line, at its left end."""
    return box_of("right", 0.0, y - 10, _limit_text(limit_s))


def _limit(limit_s: float) -> list[alt.Chart]:
    base = alt.Chart(ONCE).encode(y=alt.YDatum(limit_s))
    label = base.mark_text(align="left", baseline="bottom", dx=4, dy=-3)
    label = label.encode(x=alt.value(0), text=alt.TextValue(_limit_text(limit_s)))
    return [base.mark_rule(color=LIMIT.light, strokeWidth=1.5, strokeDash=[6, 4]), *readable(label, LIMIT.light)]


def _execution(panel: Panel, row: Row) -> str:
    """`compile`, or `compile @ pytorch-2.9.1` where versions are compared."""
    return panel.name(row).removeprefix(f"{row.framework}/{row.granularity}/")
