"""How charts look: colours that colour-blind readers and grey printers can distinguish, on light and on dark.

A chart is drawn once, in the light colours. Every colour has one role and its own hexadecimal code, so the dark
variant is the same drawing with other codes, which CSS exchanges. A PNG is always light.
"""

from collections.abc import Iterable
from html import escape
from typing import Any, NamedTuple

import vl_convert

from rnnbench.text import printable, printable_values


class Tone(NamedTuple):
    """One role's colour on a light and on a dark background."""

    light: str
    dark: str


INK = Tone("#1f2328", "#e6edf3")
MUTED = Tone("#59636e", "#9aa4af")
LINE = Tone("#c4cbd2", "#4a525b")
GRID = Tone("#dde2e7", "#30363d")
GROUND = Tone("#ffffff", "#0d1117")
LIMIT = Tone("#8c1d40", "#ff8fab")

#: Okabe and Ito's colours, each a little lighter on the dark background.
_FRAMEWORKS = {
    "pytorch": Tone("#d55e00", "#f28a3c"),
    "jax": Tone("#0072b2", "#4ba9e2"),
    "tensorflow": Tone("#e69f00", "#f6bd4b"),
    "keras": Tone("#cc79a7", "#e3a3c6"),
    "theano": Tone("#009e73", "#34c99d"),
}
_OTHERS = (
    Tone("#56b4e9", "#93d0f4"),
    Tone("#7a7f00", "#d5da4c"),
    Tone("#6f4fa8", "#b49ae6"),
    Tone("#8c564b", "#c99b91"),
    Tone("#6e7781", "#b1bac4"),
)
TONES = (INK, MUTED, GRID, GROUND, LIMIT, *_FRAMEWORKS.values(), *_OTHERS)

#: Distinguish frameworks in print without colours.
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left")


class Look(NamedTuple):
    """How one framework is drawn."""

    tone: Tone
    shape: str


def looks(frameworks: Iterable[str]) -> dict[str, Look]:
    """Known frameworks look the same in every report; the others get the remaining colours in order of their names."""
    names = sorted(set(frameworks))
    free = list(_OTHERS)
    by_framework: dict[str, Look] = {}
    for index, name in enumerate(names):
        tone = _FRAMEWORKS.get(name) or free[0]
        if name not in _FRAMEWORKS and len(free) > 1:
            free.pop(0)
        by_framework[name] = Look(tone, _SHAPES[index % len(_SHAPES)])
    return by_framework


FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
FONT_SIZE = 12  # of all text in all charts

#: The width of a drawing in points, and of the one for telephones. The page shows both at their own size.
WIDE, NARROW = 1100, 360
CONFIG: dict[str, Any] = {
    "aria": False,  # a drawing has one description as a whole; the table has its numbers
    "background": GROUND.light,
    "font": FONT,
    "padding": 12,
    "view": {"stroke": None},
    "title": {
        "anchor": "start",
        "color": INK.light,
        "fontSize": FONT_SIZE,
        "fontWeight": 600,
        "subtitleColor": MUTED.light,
        "subtitleFontSize": FONT_SIZE,
        "offset": 14,
        "subtitlePadding": 4,
    },
    "axis": {
        "labelColor": MUTED.light,
        "labelFontSize": FONT_SIZE,
        "titleColor": MUTED.light,
        "titleFontSize": FONT_SIZE,
        "titleFontWeight": "normal",
        "gridColor": GRID.light,
        "domainColor": GRID.light,
        "tickColor": GRID.light,
        "labelLimit": 420,
    },
    "legend": {
        "orient": "top",
        "direction": "horizontal",
        "labelColor": INK.light,
        "labelFontSize": FONT_SIZE,
        "labelLimit": 0,  # none
        "title": None,
        "symbolStrokeWidth": 0,
        "symbolOpacity": 1,
        "offset": 6,
    },
    "text": {"color": INK.light, "fontSize": FONT_SIZE},
    "rule": {"color": INK.light},
}


def dark_css(scope: str = "") -> str:
    """CSS rules that replace the light colours of an SVG by the dark ones."""
    return "".join(
        f'{scope}[{attribute}="{tone.light}"]{{{attribute}:{tone.dark}}}'
        for tone in TONES
        for attribute in ("fill", "stroke")
    )


PNG_SCALE = 2.0  # pixels per point: sharp on paper and on dense screens


def draw(spec: dict[str, Any]) -> str:
    """The SVG in light colours, as used in the page."""
    # A control character would abort the process: the drawing is XML, which cannot contain it.
    return vl_convert.vegalite_to_svg({**printable_values(spec), "config": CONFIG})


def as_file(svg: str, description: str) -> bytes:
    """The SVG as a file, with its description and both colour schemes."""
    title = f"<title>{escape(printable(description))}</title>"
    style = f"<style>@media (prefers-color-scheme:dark){{{dark_css()}}}</style>"
    head, bracket, rest = svg.partition(">")
    return f'{head} role="img"{bracket}{title}{style}{rest}\n'.encode()


def as_png(svg: str) -> bytes:
    """In light colours, for paper and slides."""
    return vl_convert.svg_to_png(svg, scale=PNG_SCALE)
