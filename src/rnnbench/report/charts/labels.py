"""Where labels stand so that none covers another."""

LINE = 13.0  # points between two labels


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
