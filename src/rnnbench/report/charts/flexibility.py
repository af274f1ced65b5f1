"""Time over number of abilities: a point for each system, and the front of those that no other beats.

The front has labels, where they have room; first its most flexible rows. The other points have some only where there
are few, and otherwise say their name to who points at them.
"""

from typing import Any

import altair as alt

from rnnbench import units
from rnnbench.analysis.flexibility import Flexibility, FlexibleRow
from rnnbench.analysis.row import Row, row_id
from rnnbench.domain.ability import ABILITIES
from rnnbench.report.charts.labels import label_layers, place_labels
from rnnbench.report.charts.marks import (
    ROWS,
    by_framework,
    ends,
    finish,
    log_domain,
    log_place,
    log_time,
    plot_width,
    points,
    time_label,
    wall_of,
)
from rnnbench.report.charts.theme import INK, WIDE, Look
from rnnbench.report.document import Panel

_HEIGHT = 400
_JITTER = 0.24  # of a column: rows with the same number stand beside each other, the fastest to the left
_FEW = 5  # points
_FIRST, _LAST = -0.5, len(ABILITIES) + 0.5  # of the axis of abilities


def flexibility(
    panel: Panel, found: Flexibility, looks: dict[str, Look], subtitle: str, width: int = WIDE
) -> dict[str, Any]:
    rows = {row_id(row): row for row in panel.rows}
    low, high = log_domain(ends([rows[one.row] for one in found.rows]))
    low /= (high / low) ** 0.15  # room for labels below
    data = [_datum(panel, rows[one.row], one, found) for one in found.rows]
    room = plot_width(width)
    spots = [
        (room * (one["place"] - _FIRST) / (_LAST - _FIRST), _HEIGHT - log_place(one["wall"], low, high, _HEIGHT))
        for one in data
    ]
    texts = [one["label"] for one in data]
    named = [index for index, one in enumerate(data) if one["front"] or len(data) <= _FEW]
    order = sorted(named, key=lambda index: (not data[index]["front"], -data[index]["place"]))
    for one, side in zip(data, place_labels(spots, texts, order, width=room, height=_HEIGHT), strict=True):
        one["side"] = side
    colour, shape = by_framework((one["framework"] for one in data), looks, width)
    up: dict[str, Any] = log_time(low, high, "time of one batch")
    base = alt.Chart(ROWS).encode(
        x=alt.X(
            "place",
            type="quantitative",
            title=f"abilities that are proved, of {len(ABILITIES)}{': how flexible it is' if width == WIDE else ''} →",
            scale=alt.Scale(domain=[_FIRST, _LAST], nice=False),
            axis=alt.Axis(values=list(range(len(ABILITIES) + 1)), format="d", grid=True),
        )
    )
    wall = alt.Y("wall", type="quantitative", **up)
    line = base.transform_filter("datum.front").mark_line(
        interpolate="step-before", color=INK.light, strokeWidth=1.6, strokeDash=[5, 3]
    )
    halos, labels = label_layers(base, wall, (one["side"] for one in data))
    interval = alt.Y("low", type="quantitative", **up)
    layers = [
        line.encode(y=wall, order=alt.Order("place", type="quantitative")),
        base.mark_rule(strokeWidth=1.2).encode(y=interval, y2=alt.Y2("high"), color=colour),
        *halos,
        points(base).encode(y=wall, color=colour, shape=shape),
        *labels,
    ]
    title = f"Speed over flexibility: {panel.title}"
    return finish(layers, data, title=title, subtitle=subtitle, width=width, height=_HEIGHT)


def _place(one: FlexibleRow, found: Flexibility) -> float:
    """Where its point stands on the axis of abilities."""
    peers = [other.row for other in found.rows if other.count == one.count]
    beside = peers.index(one.row) / (len(peers) - 1) if len(peers) > 1 else 0.5
    return one.count + (2 * beside - 1) * _JITTER


def _datum(panel: Panel, row: Row, one: FlexibleRow, found: Flexibility) -> dict[str, Any]:
    about = f"{panel.name(row)}: {time_label(row)} a batch, {one.count} of {len(ABILITIES)} abilities"
    return {
        "framework": row.framework,
        "wall": wall_of(row),
        "low": row.wall_low_s,
        "high": row.wall_high_s,
        "place": _place(one, found),
        "front": one.on_front,
        "label": f"{panel.name(row)} · {time_label(row)}",
        "about": about + (f", without {units.listing(one.missing)}" if one.missing else ""),
    }
