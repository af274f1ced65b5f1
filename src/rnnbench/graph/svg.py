"""A graph as SVG: nothing but standard elements, so that any browser or editor shows it."""

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from rnnbench.errors import UserError
from rnnbench.graph.layout import lay_out
from rnnbench.graph.model import Graph

#: Beyond this a drawing says nothing, and takes long.
MOST_NODES = 800

LETTER, HEIGHT, MARGIN, HEADING = 7.0, 34.0, 12.0, 28.0
LONGEST, LONGEST_NAME = 26, 20

STYLE = """\
.graph{font:12px ui-sans-serif,system-ui,sans-serif}
.graph .heading{font-weight:600;fill:#57606a}
.graph rect{fill:#eef4ff;stroke:#3b6fd4}
.graph .source rect{fill:#f4f4f2;stroke:#8c8c86}
.graph .product rect{fill:#fff3df;stroke:#c77700}
.graph text{fill:#1c1c1a;text-anchor:middle}
.graph .heading,.graph .left{text-anchor:start}
.graph .name{font-size:10px;fill:#5f5f5a}
.graph path{fill:none;stroke:#8c8c86}
.graph marker path{fill:#8c8c86;stroke:none}
@media (prefers-color-scheme:dark){
.graph rect{fill:#1b2740;stroke:#7aa2ff}.graph .source rect{fill:#262624;stroke:#8c8c86}
.graph .product rect{fill:#3a2a10;stroke:#e0a040}.graph text{fill:#f0f0ec}
.graph .name,.graph .heading{fill:#b0b0a8}}
"""

_SOURCES = ("input", "placeholder", "const", "getattr", "parameter", "variable", "accumulategrad", "readvariable")
_PRODUCTS = ("mm", "matmul", "dot", "linear", "gemm", "addmm", "mv", "lstm", "rnn")


def as_svg(graphs: Sequence[Graph]) -> str:
    """All graphs one below the other, each followed by the graphs inside its nodes."""
    parts = [part for graph in graphs for part in graph.parts()]
    total = sum(len(part.operators) for _, part in parts)
    if total > MOST_NODES:
        raise UserError(
            f"{total:,} nodes are too many to draw (at most {MOST_NODES})",
            "leave out --full, choose fewer steps (-w 'ce-short[steps=3]' --full), or take --format text, json or dot",
        )
    drawings, top, width = [], 0.0, 0.0
    for number, (title, part) in enumerate(parts):
        body, wide, high = draw(part, f"g{number}-")
        drawings.append(
            f'<g transform="translate({MARGIN:g} {top + HEADING:g})">'
            f'<text class="heading" x="0" y="-8">{escape(title)}</text>{body}</g>'
        )
        top, width = top + HEADING + high, max(width, wide)
    width, top = max(width, 240.0) + 2 * MARGIN, top + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {top:.0f}" width="{width:.0f}" '
        f'height="{top:.0f}" class="graph" role="img"><title>{escape("; ".join(graph.form for graph in graphs))}'
        f"</title><style>{STYLE}</style>{MARKER}{''.join(drawings)}</svg>\n"
    )


MARKER = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z"/></marker></defs>'
)


def draw(graph: Graph, prefix: str = "n") -> tuple[str, float, float]:
    """(elements, width, height). Node k has the id `prefix + k` and its operator as a title."""
    labels = [_short(operator) for operator in graph.operators]
    names = [
        _short(name, LONGEST_NAME) if name != operator else ""
        for name, operator in zip(graph.names, labels, strict=True)
    ]
    widths = [max(len(label), 0.85 * len(name)) * LETTER + 16 for label, name in zip(labels, names, strict=True)]
    edges = list(dict.fromkeys(edge for edge in graph.edges if edge[0] < edge[1]))
    layout = lay_out(widths, edges)
    pieces = [
        f'<path class="edge" data-from="{source}" data-to="{target}" d="{_curve(points)}" marker-end="url(#tip)"/>'
        for (source, target), points in zip(edges, layout.paths, strict=True)
    ]
    for place, (x, y) in enumerate(layout.centres):
        label, name, wide = labels[place], names[place], widths[place]
        full = f"{graph.operators[place]} {graph.names[place]}".strip()
        text = f'<text x="{x:.1f}" y="{y + (-2 if name else 4):.1f}">{escape(label)}</text>'
        if name:
            text += f'<text class="name" x="{x:.1f}" y="{y + 11:.1f}">{escape(name)}</text>'
        pieces.append(
            f'<g id="{prefix}{place}" class="node {_role(graph.operators[place])}"><title>{escape(full)}</title>'
            f'<rect x="{x - wide / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{wide:.1f}" height="{HEIGHT:g}" rx="6"/>'
            f"{text}</g>"
        )
    return "".join(pieces), layout.width, layout.height


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """From the lower edge of one node to the upper edge of another, upright at every point on the way."""
    first, last = points[0], points[-1]
    way = [(first[0], first[1] + HEIGHT / 2), *points[1:-1], (last[0], last[1] - HEIGHT / 2)]
    text = f"M{way[0][0]:.1f} {way[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(way):
        middle = (y0 + y1) / 2
        text += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return text


def _short(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _role(operator: str) -> str:
    """What a node is for the eye: something read, a matrix product, or any other operator."""
    plain = operator.lower().rpartition("::")[2]
    if plain.startswith(_SOURCES) or plain in ("output", "get_attr"):
        return "source"
    words = plain.replace("_", " ").replace(".", " ").replace("backward0", "").split()
    return "product" if any(word in _PRODUCTS for word in words) else "operator"
