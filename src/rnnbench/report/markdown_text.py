"""Text and tables in Markdown, with everything that comes from a run made harmless."""

import re
from collections.abc import Sequence

_MEANS_SOMETHING = re.compile(r"([\\`*_\[\]|#~!$])")


def plain(text: str) -> str:
    """Text that shows as it is: one line, no markup, no HTML, and no end to a table's cell."""
    line = " ".join(text.split())
    line = _MEANS_SOMETHING.sub(r"\\\1", line)
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def code(text: str) -> str:
    """Text as code within a line or a cell; a bar would end the cell even there."""
    line = " ".join(text.split()).replace("|", "¦")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    space = " " if "`" in line else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def block(lines: Sequence[tuple[str, str]]) -> str:
    """`name: value` lines as the seeds have them; each begins with a name of ours, so none can end the block."""
    return "\n".join(["``` text", *(f"{name}: {' '.join(value.split())}" for name, value in lines), "```"])


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Cells must have been made harmless. `right` names the columns of numbers."""
    widths = [max(len(row[index]) for row in (headings, *rows)) for index in range(len(headings))]

    def line(cells: Sequence[str]) -> str:
        fitted = (
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(fitted)} |"

    rules = (
        "-" * (width + 1) + ":" if index in right else ":" + "-" * (width + 1) for index, width in enumerate(widths)
    )
    return "\n".join([line(headings), f"|{'|'.join(rules)}|", *map(line, rows)])
