"""From a specification to files. One SVG serves light and dark readers."""

from html import escape
from typing import Any

import vl_convert

from rnnbench.report.charts.theme import CONFIG, dark_css

PNG_SCALE = 2.0  # two pixels a point: sharp on paper and on dense screens


def draw(spec: dict[str, Any]) -> str:
    """The SVG in light colours, as it is put into the page."""
    return vl_convert.vegalite_to_svg({**spec, "config": CONFIG})


def as_file(svg: str, words: str) -> bytes:
    """The SVG as a file: it says what it shows, and follows the reader's choice of light or dark."""
    title = f"<title>{escape(words)}</title>"
    style = f"<style>@media (prefers-color-scheme:dark){{{dark_css()}}}</style>"
    head, bracket, rest = svg.partition(">")
    return f'{head} role="img"{bracket}{title}{style}{rest}\n'.encode()


def as_png(svg: str) -> bytes:
    """In light colours: a picture for paper and slides, which cannot ask its reader."""
    return vl_convert.svg_to_png(svg, scale=PNG_SCALE)
