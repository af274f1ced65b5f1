"""Text that others wrote, made harmless for what shows it; tables as plain text and as Markdown; wrapped lines."""

import re
import textwrap
from collections.abc import Sequence
from typing import Any

#: What acts on a terminal, reorders a line, breaks a drawing, or is no character: C0 except tab and newline, DEL, C1,
#: line separators, bidirectional controls, surrogates, and the two that no XML may contain (vl-convert aborts at them).
_UNPRINTABLE = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff\\ufffe\\uffff]"
)


def printable(text: str) -> str:
    """The text with every control character written out, `\\u001b` for an escape. Within JSON it means the same."""
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def printable_values(value: Any) -> Any:
    """The same for every text within lists and dictionaries, keys included."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable_values(key): printable_values(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [printable_values(each) for each in value]
    return value


def script_json(encoded: str) -> str:
    """JSON for a script element. `</script` would end it, and after `<!--<script` its end would not be seen."""
    for character in "<>&":
        encoded = encoded.replace(character, f"\\u{ord(character):04x}")
    return printable(encoded)


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_cell(value: object) -> object:
    """A cell that no spreadsheet takes for a formula: a text that begins like one has an apostrophe before it."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    if text.startswith(_FORMULA) and not _is_number(text):
        return f"'{text}"
    return text


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", text) is not None


class Column:
    """A heading, how its cells are aligned, and how soon it is dropped from a table that is too wide: 0 means never."""

    def __init__(self, heading: str, right: bool = False, drop: int = 0) -> None:
        self.heading = heading
        self.right = right
        self.drop = drop

    def fit(self, text: str, width: int) -> str:
        return text.rjust(width) if self.right else text.ljust(width)


RULE = None  # a row that is a horizontal line


def render_table(columns: Sequence[Column], rows: Sequence[Sequence[str] | None], indent: str = "") -> str:
    """The table as text, without trailing blanks."""
    cells = [row for row in rows if row is not RULE]
    widths = [max([len(column.heading), *(len(row[index]) for row in cells)]) for index, column in enumerate(columns)]
    rule = indent + "  ".join("─" * width for width in widths)

    def line(row: Sequence[str]) -> str:
        fitted = (column.fit(text, width) for column, text, width in zip(columns, row, widths, strict=True))
        return (indent + "  ".join(fitted)).rstrip()

    lines = [line([column.heading for column in columns]), rule]
    lines += [rule if row is RULE else line(row) for row in rows]
    return "\n".join(lines)


_LAST_COLUMN = 20  # characters that a last column of words gets at least; the rest of them can be cut


def fit_table(
    columns: Sequence[Column], rows: Sequence[Sequence[str] | None], width: int
) -> tuple[list[Column], list[list[str] | None], list[str]]:
    """The columns and rows that fit into so many characters, and the headings that were dropped.

    Columns are taken by their importance as long as there is room. A last column that is never dropped is of words,
    and is cut.
    """
    cells = [row for row in rows if row is not RULE]
    widths = [max([len(column.heading), *(len(row[index]) for row in cells)]) for index, column in enumerate(columns)]
    last = len(columns) - 1
    words = last if not columns[last].drop else None
    needed = [min(each, _LAST_COLUMN) if index == words else each for index, each in enumerate(widths)]
    kept: list[int] = []
    for index in sorted(range(len(columns)), key=lambda index: columns[index].drop):
        if not columns[index].drop or sum(needed[each] + 2 for each in (*kept, index)) - 2 <= width:
            kept.append(index)
    kept.sort()
    room = max(_LAST_COLUMN, width - sum(widths[index] + 2 for index in kept if index != last))

    def fitted(row: Sequence[str]) -> list[str]:
        return [shortened(row[index], room) if index == words else row[index] for index in kept]

    dropped = [column.heading for index, column in enumerate(columns) if index not in kept]
    return [columns[index] for index in kept], [row if row is RULE else fitted(row) for row in rows], dropped


def render_fitted(
    columns: Sequence[Column], rows: Sequence[Sequence[str] | None], width: int | None, indent: str = ""
) -> tuple[str, list[str]]:
    """The table within this width, and the headings that were dropped for it; None: no limit."""
    if width is None:
        return render_table(columns, rows, indent), []
    kept, cut, dropped = fit_table(columns, rows, width - len(indent))
    return render_table(kept, cut, indent), dropped


def shortened(text: str, most: int) -> str:
    """The text in at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


_MARKDOWN_SYNTAX = re.compile(r"([\\`*_\[\]|#~!$])")


def escape_markdown(text: str) -> str:
    """Text that Markdown shows unchanged: one line, no markup, no HTML, and no end of a table cell."""
    line = printable(" ".join(text.split()))
    line = _MARKDOWN_SYNTAX.sub(r"\\\1", line)
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def markdown_code(text: str) -> str:
    """Text as code within a line or a table cell. A bar is replaced, because it would end the cell."""
    line = printable(" ".join(text.split())).replace("|", "¦")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    space = " " if "`" in line else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def markdown_block(lines: Sequence[tuple[str, str]]) -> str:
    """Lines `name: value` as in Carrot (2019). Each begins with a name of ours, so no value can end the block."""
    return "\n".join(["``` text", *(f"{name}: {printable(' '.join(value.split()))}" for name, value in lines), "```"])


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """The cells must be escaped already. `right` holds the indices of right-aligned columns."""
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


WIDTH = 110  # characters of running text per line in a terminal


def wrapped(text: str, first: str, rest: str, width: int = WIDTH) -> str:
    """Running text in lines, with a prefix for the first line and one for the others. No name is broken."""
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
