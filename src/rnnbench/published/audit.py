"""Checks a table against itself: elapsed = batches × wall, and throughput = batch size / wall.

A table is read from a CSV file, a Markdown text or a run, its rows are checked, and the result is shown as text.
"""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from rnnbench.analysis.rows import make_rows
from rnnbench.domain.catalog import parse_workload
from rnnbench.errors import UserError
from rnnbench.published.rows import SOURCES
from rnnbench.store import read_folder

#: Headings of the figures: in the published tables, in `results.csv` and in `report.md`.
_HEADINGS = {
    "wall": ("wall_s", "wall time (s)"),
    "elapsed": ("elapsed_s", "elapsed time (s)"),
    "throughput": ("seq_per_s", "sequences_per_s", "sequence per second"),
    "batches": ("batches",),
    "batch": ("batch",),
}
_NAMING = (
    "run", "source", "device", "workload", "system", "granularity", "label", "framework", "implementation",
    "phase", "precision", "environment",
)  # fmt: skip


class PrintedNumber(NamedTuple):
    """A number as printed: rounding may have changed it by half a unit of its last digit."""

    value: float
    half: float

    @property
    def low(self) -> float:
        return self.value - self.half

    @property
    def high(self) -> float:
        return self.value + self.half


class TableLine(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a table; None where it has no such figure."""

    number: int  # of the line in the file, or of the row in the run
    name: str
    wall: PrintedNumber | None
    elapsed: PrintedNumber | None
    throughput: PrintedNumber | None
    batches: int | None  # timed
    batch: int | None  # sequences in one batch


def read_table(path: Path) -> list[TableLine]:
    """From a run's folder, a CSV file, or a text with Markdown tables."""
    if path.is_dir():
        return _read_run(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}", "give a CSV or Markdown file, or a run's folder") from error
    rows = _read_csv(text) if path.suffix.lower() == ".csv" else _read_markdown(text)
    lines = [_table_line(number, name, cells) for number, name, cells in rows]
    if not lines:
        raise UserError(
            f"{path} has no table of times",
            "it needs the column wall_s (or: Wall Time (s)), and elapsed_s or seq_per_s",
        )
    return lines


def _read_run(folder: Path) -> list[TableLine]:
    def exact(value: float | None) -> PrintedNumber | None:
        return None if value is None else PrintedNumber(value, 0.0)

    return [
        TableLine(
            number=number,
            name=f"{row.workload} {row.system} {row.phase} {row.device} {row.precision} {row.environment}",
            wall=exact(row.wall_s),
            elapsed=exact(row.elapsed_s),
            throughput=exact(row.sequences_per_s),
            batches=row.batches,
            batch=row.batch,
        )
        for number, row in enumerate(make_rows(read_folder(folder)), 1)
    ]


_Row = tuple[int, str, dict[str, str]]


def _read_csv(text: str) -> Iterator[_Row]:
    reader = csv.DictReader(text.splitlines(), restval="")
    for row in reader:
        cells = {(name or "").strip().lower(): (value or "") for name, value in row.items() if isinstance(value, str)}
        if any(heading in cells for heading in (*_HEADINGS["wall"], "mean_ms")):
            yield reader.line_num, " · ".join(filter(None, (cells.get(name, "") for name in _NAMING))), cells


def _read_markdown(text: str) -> Iterator[_Row]:
    """Every table with a column of wall times; a row is named by its section and its first cell."""
    section, headings = "", list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("|"):
            headings = []
            section = line.lstrip("# ").strip() if line.startswith("#") else section
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not headings:
            headings = [cell.lower() for cell in cells]
        elif set(line) - set("|:- ") and any(heading in headings for heading in _HEADINGS["wall"]):
            yield number, f"{section} · {cells[0]}", dict(zip(headings, cells, strict=False))


def _table_line(number: int, name: str, cells: dict[str, str]) -> TableLine:
    figures = {
        what: next((_printed_number(cells[heading]) for heading in headings if heading in cells), None)
        for what, headings in _HEADINGS.items()
    }
    batches, batch = figures["batches"], figures["batch"]
    return TableLine(
        number=number,
        name=name,
        wall=figures["wall"],
        elapsed=figures["elapsed"],
        throughput=figures["throughput"],
        batches=round(batches.value) if batches else _published_batches(cells),
        batch=round(batch.value) if batch else _workload_batch(cells),
    )


def _published_batches(cells: dict[str, str]) -> int | None:
    source = SOURCES.get(cells.get("source", ""))
    return source.batches if source else None


def _workload_batch(cells: dict[str, str]) -> int | None:
    try:
        return parse_workload(cells.get("workload", "")).batch
    except UserError:  # not a workload of ours
        return None


def _printed_number(text: str) -> PrintedNumber | None:
    """`1,397.0780`, or None where there is no positive number."""
    plain = text.strip().replace(",", "")
    try:
        value = float(plain)
    except ValueError:
        return None
    if not 0 < value < math.inf:
        return None
    mantissa, _, exponent = plain.lower().partition("e")
    places = len(mantissa.partition(".")[2])
    return PrintedNumber(value, 0.5 * 10.0 ** (int(exponent or 0) - places))


TOLERANCE = 0.02


class Contradiction(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that disagrees with the wall time of its row."""

    figure: str  # `elapsed` or `throughput`
    printed: float
    expected: float

    @property
    def off(self) -> float:
        return self.printed / self.expected - 1


class Suspect(msgspec.Struct, frozen=True, kw_only=True):
    """A row that contradicts itself, with remarks on the likely cause."""

    line: TableLine
    contradictions: tuple[Contradiction, ...]
    remarks: tuple[str, ...]


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """One table: how many rows could be checked, and those that contradict themselves."""

    table: str
    checked: int
    blank: int  # rows without a wall time, or with no other figure
    unknown: int  # rows that do not say how many batches were timed, or their size
    suspects: tuple[Suspect, ...]


def audit_table(
    table: str, lines: Sequence[TableLine], others: Sequence[TableLine], tolerance: float = TOLERANCE
) -> Audit:
    """`others` are the rows from which figures may have been copied by mistake."""
    checked = blank = unknown = 0
    suspects: list[Suspect] = []
    for line in lines:
        if line.wall is None or not (line.elapsed or line.throughput):
            blank += 1
        elif not (line.elapsed and line.batches) and not (line.throughput and line.batch):
            unknown += 1
        else:
            checked += 1
            if contradictions := tuple(_contradictions(line, tolerance)):
                remarks = tuple(_copied(line, contradictions, others) or _odd_one_out(line, tolerance))
                suspects.append(Suspect(line=line, contradictions=contradictions, remarks=remarks))
    return Audit(table=table, checked=checked, blank=blank, unknown=unknown, suspects=tuple(suspects))


def _contradictions(line: TableLine, tolerance: float) -> Iterator[Contradiction]:
    """Figures that are off by more than the tolerance, even if rounding is allowed for."""
    wall = line.wall
    assert wall is not None
    if line.elapsed and line.batches:
        least, most = line.elapsed.low / (line.batches * wall.high), line.elapsed.high / (line.batches * wall.low)
        if least > 1 + tolerance or most < 1 - tolerance:
            expected = line.batches * wall.value
            yield Contradiction(figure="elapsed", printed=line.elapsed.value, expected=expected)
    if line.throughput and line.batch:
        least, most = line.throughput.low * wall.low / line.batch, line.throughput.high * wall.high / line.batch
        if least > 1 + tolerance or most < 1 - tolerance:
            expected = line.batch / wall.value
            yield Contradiction(figure="throughput", printed=line.throughput.value, expected=expected)


def _odd_one_out(line: TableLine, tolerance: float) -> Iterator[str]:
    """Each figure implies a time per batch. Where two of the three agree, the third is wrong."""
    if not (line.wall and line.elapsed and line.batches and line.throughput and line.batch):
        return
    implied = {
        "wall time": line.wall.value,
        "elapsed time": line.elapsed.value / line.batches,
        "throughput": line.batch / line.throughput.value,
    }
    for name in implied:
        first, second = (value for other, value in implied.items() if other != name)
        if abs(first / second - 1) <= tolerance:
            yield f"the {name} is wrong: the other two agree on {first:.4g} s a batch"


def _copied(line: TableLine, contradictions: Sequence[Contradiction], others: Sequence[TableLine]) -> list[str]:
    """Rows that have the same contradictory figures, which may have been copied from there."""
    remarks: list[str] = []
    for other in others:
        figures = {"elapsed": other.elapsed, "throughput": other.throughput}
        same = [each.figure for each in contradictions if (own := figures[each.figure]) and own.value == each.printed]
        if other is not line and same:
            remarks.append(f"the same {' and '.join(same)} as line {other.number}: {other.name}")
    return remarks


def show_audits(audits: Sequence[Audit], tolerance: float) -> str:
    return "\n\n".join("\n".join(_audit_lines(audit, tolerance)) for audit in audits)


def audit_as_fields(audit: Audit) -> dict[str, object]:
    """For JSON."""
    return {
        "table": audit.table,
        "checked": audit.checked,
        "blank": audit.blank,
        "unknown": audit.unknown,
        "suspects": [
            {
                "line": suspect.line.number,
                "name": suspect.line.name,
                "wall_s": suspect.line.wall.value if suspect.line.wall else None,
                "batches": suspect.line.batches,
                "batch": suspect.line.batch,
                "contradictions": [
                    {"figure": each.figure, "printed": each.printed, "expected": each.expected, "off": each.off}
                    for each in suspect.contradictions
                ],
                "remarks": suspect.remarks,
            }
            for suspect in audit.suspects
        ],
    }


def _audit_lines(audit: Audit, tolerance: float) -> Iterator[str]:
    unchecked = [
        f"; {audit.blank} have only one figure or none" if audit.blank else "",
        f"; {audit.unknown} do not say how many batches, or of what size (--batches, --batch)" if audit.unknown else "",
    ]
    yield (
        f"{audit.table}: {audit.checked} rows checked, {len(audit.suspects)} contradict themselves "
        f"by more than {100 * tolerance:g} %{''.join(unchecked)}"
    )
    for suspect in audit.suspects:
        yield f"  line {suspect.line.number}: {suspect.line.name}"
        yield from _suspect_lines(suspect)


def _suspect_lines(suspect: Suspect) -> Iterator[str]:
    line = suspect.line
    assert line.wall is not None
    for each in suspect.contradictions:
        rule = (
            f"{line.batches} × {line.wall.value:g} s = {each.expected:.4f} s"
            if each.figure == "elapsed"
            else f"{line.batch} / {line.wall.value:g} s = {each.expected:.4f}"
        )
        yield f"    {each.figure:10} {each.printed:.10g}, but {rule} ({100 * each.off:+.1f} %)"
    for remark in suspect.remarks:
        yield f"    → {remark}"
