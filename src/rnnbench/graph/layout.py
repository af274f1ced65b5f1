"""Where nodes and edges lie in a drawing: in layers, from what is read to what comes out.

Sugiyama's method in its plainest form: layers by the longest way, crossings lessened by moving nodes to the
middle of their neighbours, and places as near to that middle as order and room allow.
"""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

GAP = 18.0
LAYER = 64.0
SWEEPS = 8


class Layout(msgspec.Struct):
    """Centres of the nodes, and for every edge the points it goes through, all with the origin top left."""

    width: float
    height: float
    centres: list[tuple[float, float]]
    paths: list[list[tuple[float, float]]]


def lay_out(widths: Sequence[float], edges: Sequence[tuple[int, int]]) -> Layout:
    """`widths` are those of the nodes; an edge goes from an earlier node to a later one."""
    count = len(widths)
    if not count:
        return Layout(0.0, 0.0, [], [])
    layer = _layers(count, edges)
    # An edge across several layers is led through each of them by a place of its own.
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
    places = _places(rows, room, above, below)
    left = min(places[node] - room[node] / 2 for node in range(len(room)))
    points = [(places[node] - left, rank[node] * LAYER + LAYER / 2) for node in range(len(room))]
    width = max(points[node][0] + room[node] / 2 for node in range(len(room)))
    return Layout(width, len(rows) * LAYER, points[:count], [[points[node] for node in chain] for chain in chains])


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """As far down as the longest way to it; what reads nothing stands just above its first reader."""
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


def _places(
    rows: list[list[int]], room: Sequence[float], above: list[list[int]], below: list[list[int]]
) -> list[float]:
    """Horizontal centres: sweeps down and up, each row ordered and placed by the row it comes from."""
    places = [0.0] * len(room)
    for row in rows:
        _spread(row, [0.0] * len(row), room, places)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        for row in rows if down else reversed(rows):
            wanted = {
                node: sum(places[other] for other in neighbours[node]) / len(neighbours[node])
                if neighbours[node]
                else places[node]
                for node in row
            }
            row.sort(key=lambda node: wanted[node])
            _spread(row, [wanted[node] for node in row], room, places)
    return places


def _spread(row: Sequence[int], wanted: Sequence[float], room: Sequence[float], places: list[float]) -> None:
    """Each node as near to where it is wanted as the others allow: least squares, the order kept."""
    offset, offsets = 0.0, []
    for node, after in zip(row, [*row[1:], -1], strict=True):
        offsets.append(offset)
        offset += (room[node] + room[after]) / 2 + GAP
    blocks: list[tuple[float, int]] = []  # (sum of wishes, nodes): neighbours that must touch share one wish
    for wish, shift in zip(wanted, offsets, strict=True):
        total, size = wish - shift, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / size:
            before, number = blocks.pop()
            total, size = total + before, size + number
        blocks.append((total, size))
    index = 0
    for total, size in blocks:
        for _ in range(size):
            places[row[index]] = total / size + offsets[index]
            index += 1
