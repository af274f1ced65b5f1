"""Plain aligned text. Rich draws finer tables, but takes seconds for the thousands of rows of a full run."""

from collections.abc import Sequence


class Column:
    """A heading and how its cells are aligned."""

    def __init__(self, heading: str, right: bool = False) -> None:
        self.heading = heading
        self.right = right

    def fit(self, text: str, width: int) -> str:
        return text.rjust(width) if self.right else text.ljust(width)


RULE = None  # a row of this kind is a line across


def render(columns: Sequence[Column], rows: Sequence[Sequence[str] | None], indent: str = "") -> str:
    """The table as text, without trailing blanks. A last column wider than the rest is left to run on."""
    cells = [row for row in rows if row is not RULE]
    widths = [max([len(column.heading), *(len(row[index]) for row in cells)]) for index, column in enumerate(columns)]
    across = indent + "  ".join("─" * width for width in widths)

    def line(row: Sequence[str]) -> str:
        fitted = (column.fit(text, width) for column, text, width in zip(columns, row, widths, strict=True))
        return (indent + "  ".join(fitted)).rstrip()

    lines = [line([column.heading for column in columns]), across]
    lines += [across if row is RULE else line(row) for row in rows]
    return "\n".join(lines)
