"""Where labels stand so that none covers another."""

import math

LINE = 13.0  # points between two labels


def beside(values: list[float], low: float, high: float, height: float) -> list[float]:
    """Values on a logarithmic axis, largest first -> where on it their labels stand, moved apart if need be."""
    span = math.log(high / low)
    wanted = [math.log(high / value) / span * height for value in values]  # points from the top
    return [high * math.exp(-place / height * span) for place in spread(wanted, LINE, height)]


def columns(places: list[float], width: float) -> list[list[int]]:
    """Which labels could cover each other: indexes of points that follow on each other by less than a label's width."""
    found: list[list[int]] = []
    for index in sorted(range(len(places)), key=lambda index: places[index]):
        if found and places[index] - places[found[-1][-1]] < width:
            found[-1].append(index)
        else:
            found.append([index])
    return found


def spread(wanted: list[float], least: float, height: float) -> list[float]:
    """Ascending wishes -> places at least so far apart, each as near as may be to its wish.

    Neighbours that would touch are joined into a block, which stands at the mean of what its members wish.
    """
    blocks: list[list[float]] = []  # for each member of a block, where it would have the block begin
    starts: list[float] = []
    for wish in wanted:
        blocks.append([wish])
        starts.append(wish)
        while len(blocks) > 1 and starts[-2] + least * len(blocks[-2]) > starts[-1]:
            starts.pop()
            last = blocks.pop()
            before = least * len(blocks[-1])
            blocks[-1] += [member - before for member in last]
            most = height - least * (len(blocks[-1]) - 1)
            starts[-1] = max(min(sum(blocks[-1]) / len(blocks[-1]), most), 0.0)
    return [start + least * index for start, block in zip(starts, blocks, strict=True) for index in range(len(block))]
