"""Time over number of abilities: a point for each system, and the front of those that no other beats.

Only the front has labels, right below its points: there no other point can be, since it would be faster with more
abilities. The other points say their name to who points at them.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt

from rnnbench import units
from rnnbench.analysis.flexibility import Flexibility, FlexibleRow
from rnnbench.analysis.row import Row, RowId, row_id
from rnnbench.domain.ability import ABILITIES
from rnnbench.report.charts.marks import ROWS, ends, finish, log_domain, log_time, time_label, wall_of
from rnnbench.report.charts.theme import GROUND, INK, MUTED, Look
from rnnbench.report.document import Panel

_WIDTH, _HEIGHT = 820, 400
_COLUMN = 54.0  # points between two numbers of abilities; what is left of the width is for the last label
_JITTER = 0.24  # of a column: rows with the same number stand beside each other, the fastest to the left
_LETTER = 6.4  # points, of a letter in a label: rather too much
_LINE = 14.0  # points between two labels


def flexibility(panel: Panel, found: Flexibility, looks: dict[str, Look], subtitle: str) -> dict[str, Any]:
    rows = {row_id(row): row for row in panel.rows}
    low, high = log_domain(ends([rows[one.row] for one in found.rows]))
    low /= (high / low) ** 0.15  # room for labels below
    labels = _label_places([one for one in _places(panel, rows, found) if one.text], low, high)
    data = [
        {
            **_datum(panel, rows[one.row], one, found),
            "label": labels[one.row].text if one.row in labels else "",
            "label_place": labels[one.row].y if one.row in labels else None,
        }
        for one in found.rows
    ]
    names = sorted({one["framework"] for one in data})
    tones, shapes = ([getattr(looks[name], part) for name in names] for part in ("tone", "shape"))
    colour = alt.Color("framework", type="nominal", scale=alt.Scale(domain=names, range=[tone.light for tone in tones]))
    shape = alt.Shape("framework", type="nominal", scale=alt.Scale(domain=names, range=shapes))
    up: dict[str, Any] = log_time(low, high, "time of one batch")
    base = alt.Chart(ROWS).encode(
        x=alt.X(
            "place",
            type="quantitative",
            title=f"abilities that are proved, of {len(ABILITIES)}: how flexible it is →",
            scale=alt.Scale(domain=[-0.5, _WIDTH / _COLUMN - 0.5], nice=False),
            axis=alt.Axis(values=list(range(len(ABILITIES) + 1)), format="d", grid=True, titleAnchor="start"),
        )
    )
    wall = alt.Y("wall", type="quantitative", **up)
    front = base.transform_filter("datum.front")
    line = front.mark_line(interpolate="step-before", color=INK.light, strokeWidth=1.6, strokeDash=[5, 3])
    points = base.mark_point(filled=True, size=70, opacity=0.9, aria=True)
    label = front.encode(y=alt.Y("label_place", type="quantitative", **up), text=alt.Text("label", type="nominal"))
    text: dict[str, Any] = {"align": "left", "baseline": "middle", "dx": 4}
    return finish(
        [
            line.encode(y=wall, order=alt.Order("place", type="quantitative")),
            base.mark_rule(strokeWidth=1.2).encode(
                y=alt.Y("low", type="quantitative", **up), y2=alt.Y2("high"), color=colour
            ),
            label.mark_text(**text, stroke=GROUND.light, strokeWidth=4, color=GROUND.light),
            points.encode(y=wall, color=colour, shape=shape, description=alt.Description("about", type="nominal")),
            label.mark_text(**text, color=MUTED.light),
        ],
        data,
        title=f"Speed over flexibility: {panel.title}",
        subtitle=subtitle,
        width=_WIDTH,
        height=_HEIGHT,
    )


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
        "about": about + (f", without {units.listing(one.missing)}" if one.missing else ""),
    }


class _Label(NamedTuple):
    row: RowId
    text: str
    x: float  # points from the left
    y: float  # seconds, as on the axis


def _places(panel: Panel, rows: dict[RowId, Row], found: Flexibility) -> list[_Label]:
    return [
        _Label(
            one.row,
            f"{panel.name(rows[one.row])} · {time_label(rows[one.row])}",
            (_place(one, found) + 0.5) * _COLUMN,
            one.wall_s,
        )
        for one in found.front
    ]


def _label_places(labels: Sequence[_Label], low: float, high: float) -> dict[RowId, _Label]:
    """Each label a line below its point, and further down where it would cover one that starts further right."""
    pixels_per_log = _HEIGHT / math.log(high / low)
    taken: list[tuple[float, float, float]] = []  # left, right, middle
    placed: dict[RowId, _Label] = {}

    def is_free(left: float, right: float, middle: float) -> bool:
        return not any(left < r and ll < right and abs(m - middle) < _LINE for ll, r, m in taken)

    for label in sorted(labels, key=lambda label: -label.x):
        right = label.x + _LETTER * len(label.text)
        middle = math.log(high / label.y) * pixels_per_log + _LINE
        while not is_free(label.x, right, middle):
            middle += 1.0
        taken.append((label.x, right, middle))
        placed[label.row] = label._replace(y=high * math.exp(-middle / pixels_per_log))
    return placed
