"""Graphs as SVG, with standard elements only, so that any browser or editor can show them; and their layout.

The layout is layered: nodes in rows by their depth, ordered and placed within a row by their neighbours.
"""

from collections.abc import Sequence
from html import escape
from itertools import pairwise

import msgspec

from rnnbench.errors import UserError
from rnnbench.graph.capture import Graph

MOST_NODES = 800  # larger drawings take long and cannot be read
LETTER_WIDTH, HEIGHT, MARGIN, HEADING = 7.0, 34.0, 12.0, 28.0
LONGEST_LABEL, LONGEST_NAME = 26, 20
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
MARKER = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z"/></marker></defs>'
)


def as_svg(graphs: Sequence[Graph]) -> str:
    """All graphs, one below the other, each followed by the graphs inside its nodes."""
    parts = [part for graph in graphs for part in graph.parts()]
    total = sum(len(part.operators) for _, part in parts)
    if total > MOST_NODES:
        raise UserError(
            f"{total:,} nodes are too many to draw (at most {MOST_NODES})",
            "leave out --full, choose fewer steps (-w 'ce-short[steps=3]' --full), or use --format text, json or dot",
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


def draw(graph: Graph, prefix: str = "n") -> tuple[str, float, float]:
    """The SVG elements, their width and their height. Node k has the id `prefix + k`, its title is its operator."""
    labels = [_short(operator) for operator in graph.operators]
    names = [
        _short(name, LONGEST_NAME) if name != operator else ""
        for name, operator in zip(graph.names, labels, strict=True)
    ]
    widths = [max(len(label), 0.85 * len(name)) * LETTER_WIDTH + 16 for label, name in zip(labels, names, strict=True)]
    edges = list(dict.fromkeys(edge for edge in graph.edges if edge[0] < edge[1]))
    layout = lay_out(widths, edges)
    pieces = [
        f'<path class="edge" data-from="{source}" data-to="{target}" d="{_curve(points)}" marker-end="url(#tip)"/>'
        for (source, target), points in zip(edges, layout.paths, strict=True)
    ]
    for node, (x, y) in enumerate(layout.centres):
        label, name, width = labels[node], names[node], widths[node]
        full_name = f"{graph.operators[node]} {graph.names[node]}".strip()
        text = f'<text x="{x:.1f}" y="{y + (-2 if name else 4):.1f}">{escape(label)}</text>'
        if name:
            text += f'<text class="name" x="{x:.1f}" y="{y + 11:.1f}">{escape(name)}</text>'
        pieces.append(
            f'<g id="{prefix}{node}" class="node {_role(graph.operators[node])}"><title>{escape(full_name)}</title>'
            f'<rect x="{x - width / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{width:.1f}" height="{HEIGHT:g}" rx="6"/>'
            f"{text}</g>"
        )
    return "".join(pieces), layout.width, layout.height


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """A path from the lower edge of one node to the upper edge of another, vertical at every point in between."""
    first, last = points[0], points[-1]
    path = [(first[0], first[1] + HEIGHT / 2), *points[1:-1], (last[0], last[1] - HEIGHT / 2)]
    text = f"M{path[0][0]:.1f} {path[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(path):
        middle = (y0 + y1) / 2
        text += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return text


def _short(text: str, longest: int = LONGEST_LABEL) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


_SOURCES = ("input", "placeholder", "const", "getattr", "parameter", "variable", "accumulategrad", "readvariable")
_PRODUCTS = ("mm", "matmul", "dot", "linear", "gemm", "addmm", "mv", "lstm", "rnn")


def _role(operator: str) -> str:
    """The node's colour class: an input or parameter, a matrix product, or any other operator."""
    plain = operator.lower().rpartition("::")[2]
    if plain.startswith(_SOURCES) or plain in ("output", "get_attr"):
        return "source"
    words = plain.replace("_", " ").replace(".", " ").replace("backward0", "").split()
    return "product" if any(word in _PRODUCTS for word in words) else "operator"


NODE_GAP = 18.0
LAYER_HEIGHT = 64.0
SWEEPS = 8


class Layout(msgspec.Struct):
    """The centres of the nodes and the points of every edge. The origin is at the top left."""

    width: float
    height: float
    centres: list[tuple[float, float]]
    paths: list[list[tuple[float, float]]]


def lay_out(widths: Sequence[float], edges: Sequence[tuple[int, int]]) -> Layout:
    """Place nodes of these widths. Every edge must point from an earlier node to a later one."""
    count = len(widths)
    if not count:
        return Layout(0.0, 0.0, [], [])
    layer = _layer_of_each_node(count, edges)
    # An edge across several layers gets a dummy node of width 0 in each layer between.
    room, rank = list(widths), list(layer)
    chains: list[list[int]] = []
    for source, target in edges:
        chain = [source]
        for between in range(layer[source] + 1, layer[target]):
            chain.append(len(room))
            room.append(0.0)
            rank.append(between)
        chains.append([*chain, target])
    rows: list[list[int]] = [[] for _ in range(max(rank) + 1)]
    for node, row in enumerate(rank):
        rows[row].append(node)
    above: list[list[int]] = [[] for _ in room]
    below: list[list[int]] = [[] for _ in room]
    for chain in chains:
        for upper, lower in pairwise(chain):
            above[lower].append(upper)
            below[upper].append(lower)
    xs = _horizontal_centres(rows, room, above, below)
    left = min(xs[node] - room[node] / 2 for node in range(len(room)))
    points = [(xs[node] - left, rank[node] * LAYER_HEIGHT + LAYER_HEIGHT / 2) for node in range(len(room))]
    width = max(points[node][0] + room[node] / 2 for node in range(len(room)))
    return Layout(
        width, len(rows) * LAYER_HEIGHT, points[:count], [[points[node] for node in chain] for chain in chains]
    )


def _layer_of_each_node(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each node: its longest path from an input. Inputs are one layer above their first reader."""
    sources: list[list[int]] = [[] for _ in range(count)]
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        sources[target].append(source)
        targets[source].append(target)
    layer = [0] * count
    for node in range(count):
        layer[node] = max((layer[source] + 1 for source in sources[node]), default=0)
    for node in range(count):
        if not sources[node] and targets[node]:
            layer[node] = min(layer[target] for target in targets[node]) - 1
    return layer


def _horizontal_centres(
    rows: list[list[int]], room: Sequence[float], above: list[list[int]], below: list[list[int]]
) -> list[float]:
    """Sweep down and up, and order and place each row by its neighbours in the row before."""
    xs = [0.0] * len(room)
    for row in rows:
        _place_row(row, [0.0] * len(row), room, xs)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        for row in rows if down else reversed(rows):
            wanted = {
                node: sum(xs[other] for other in neighbours[node]) / len(neighbours[node])
                if neighbours[node]
                else xs[node]
                for node in row
            }
            row.sort(key=lambda node: wanted[node])
            _place_row(row, [wanted[node] for node in row], room, xs)
    return xs


def _place_row(row: Sequence[int], wanted: Sequence[float], room: Sequence[float], xs: list[float]) -> None:
    """Place each node as near to its wanted centre as the others allow: least squares, keeping the order."""
    offset, offsets = 0.0, []
    for node, after in zip(row, [*row[1:], -1], strict=True):
        offsets.append(offset)
        offset += (room[node] + room[after]) / 2 + NODE_GAP
    blocks: list[tuple[float, int]] = []  # (sum of wanted positions, nodes) of neighbours that touch
    for centre, shift in zip(wanted, offsets, strict=True):
        total, size = centre - shift, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / size:
            before, number = blocks.pop()
            total, size = total + before, size + number
        blocks.append((total, size))
    index = 0
    for total, size in blocks:
        for _ in range(size):
            xs[row[index]] = total / size + offsets[index]
            index += 1
