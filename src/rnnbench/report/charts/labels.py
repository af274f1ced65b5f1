"""Which points of a chart have a label, and on which side of its point: no label covers another one, or a point.

There is no room for sixty labels. They are given out in order of importance; a point that gets none is named when the
page's reader points at it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import altair as alt

from rnnbench.report.charts.theme import FONT_SIZE, GROUND, MUTED

Side = Literal["right", "left", "above", "below", ""]  # "": no label

_HEIGHT = 1.25 * FONT_SIZE
_POINT = 6.0  # half the width of a point, with a margin
_AWAY = 9.0  # from a point's centre to its label

#: How the text of each side is drawn.
_MARKS: dict[Side, dict[str, Any]] = {
    "right": {"align": "left", "baseline": "middle", "dx": _AWAY},
    "left": {"align": "right", "baseline": "middle", "dx": -_AWAY},
    "above": {"align": "center", "baseline": "bottom", "dy": -_AWAY + 1},
    "below": {"align": "center", "baseline": "top", "dy": _AWAY - 1},
}


class Box(NamedTuple):
    """A rectangle in a chart, in points from its left and its top."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def text_width(text: str) -> float:
    """In points, rather too much than too little: fonts differ."""
    return FONT_SIZE * sum(_WIDTHS.get(letter, 0.72 if letter.isupper() else 0.58) for letter in text)


_WIDTHS = dict.fromkeys("ijlI.,:;'|!· ", 0.3) | dict.fromkeys('ft/-r()[]"', 0.38) | dict.fromkeys("mwMW@%±×", 0.92)


def box_of(side: Side, x: float, y: float, text: str) -> Box:
    """The room that a label on this side of a point takes."""
    width = text_width(text)
    if side in ("right", "left"):
        left = x + _AWAY if side == "right" else x - _AWAY - width
        return Box(left, y - _HEIGHT / 2, left + width, y + _HEIGHT / 2)
    top = y - _AWAY - _HEIGHT if side == "above" else y + _AWAY
    return Box(x - width / 2, top, x + width / 2, top + _HEIGHT)


def place_labels(
    points: Sequence[tuple[float, float]],
    texts: Sequence[str],
    order: Iterable[int],
    *,
    width: float,
    height: float,
    taken: Iterable[Box] = (),
) -> list[Side]:
    """The side of every point's label. Room is given in this order, inside the chart, and not where it is taken."""
    dots = [Box(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points]
    used = list(taken)
    sides: list[Side] = [""] * len(points)
    for index in order:
        for side in _MARKS:
            box = box_of(side, *points[index], texts[index])
            inside = box.left >= 0 and box.right <= width and box.top >= -_POINT and box.bottom <= height + _POINT
            others = (dot for number, dot in enumerate(dots) if number != index)
            if inside and texts[index] and not any(map(box.overlaps, used)) and not any(map(box.overlaps, others)):
                sides[index] = side
                used.append(box)
                break
    return sides


def readable(text: alt.Chart, colour: str = MUTED.light) -> list[alt.Chart]:
    """The text twice: first as a thick outline in the background's colour, so that lines do not cross it."""
    halo = text.copy(deep=True)
    halo.mark = {**text.mark.to_dict(), "stroke": GROUND.light, "strokeWidth": 4, "color": GROUND.light, "aria": False}
    text.mark["color"] = colour
    return [halo, text]


def label_layers(base: alt.Chart, y: alt.Y, sides: Iterable[Side]) -> tuple[list[alt.Chart], list[alt.Chart]]:
    """The labels that have a side, which is the field `side`: first their outlines, to be drawn below the points."""
    halos, labels = [], []
    for side in sorted({side for side in sides if side}):
        chosen = base.transform_filter(f"datum.side == '{side}'")
        text = chosen.mark_text(**_MARKS[side]).encode(y=y, text=alt.Text("label", type="nominal"))
        halo, label = readable(text)
        halos.append(halo)
        labels.append(label)
    return halos, labels
