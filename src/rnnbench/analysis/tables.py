"""Tables of wall time, elapsed time and throughput, as anybody may have published them: CSV or Markdown."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from rnnbench.analysis.rows import make_rows
from rnnbench.domain.catalog import parse_workload
from rnnbench.errors import UserError
from rnnbench.published import SOURCES
from rnnbench.store.folder import read_folder

#: Headings under which a table may have its figures: those of the seeds, of `results.csv` and of `report.md`.
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


class Figure(NamedTuple):
    """A number as printed: half a unit of its last place may have been lost."""

    value: float
    half: float

    @property
    def low(self) -> float:
        return self.value - self.half

    @property
    def high(self) -> float:
        return self.value + self.half


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a table; None where it has no such figure."""

    number: int  # of its line in the file, or of its row in the run
    name: str
    wall: Figure | None
    elapsed: Figure | None
    throughput: Figure | None
    batches: int | None  # timed
    batch: int | None  # sequences in one


def read_table(path: Path) -> list[Line]:
    """A CSV file, a run's folder, or else the Markdown tables in a text."""
    if path.is_dir():
        return _of_run(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}", "give a CSV or Markdown file, or a run's folder") from error
    rows = _of_csv(text) if path.suffix.lower() == ".csv" else _of_markdown(text)
    lines = [_line(number, name, cells) for number, name, cells in rows]
    if not lines:
        raise UserError(
            f"{path} has no table of times",
            "it needs a heading of wall_s (or: Wall Time (s)), and elapsed_s or seq_per_s beside it",
        )
    return lines


def _of_run(folder: Path) -> list[Line]:
    def exact(value: float | None) -> Figure | None:
        return None if value is None else Figure(value, 0.0)

    return [
        Line(
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


def _of_csv(text: str) -> Iterator[_Row]:
    reader = csv.DictReader(text.splitlines(), restval="")
    for row in reader:
        cells = {(name or "").strip().lower(): (value or "") for name, value in row.items() if isinstance(value, str)}
        if any(heading in cells for heading in (*_HEADINGS["wall"], "mean_ms")):
            yield reader.line_num, " · ".join(filter(None, (cells.get(name, "") for name in _NAMING))), cells


def _of_markdown(text: str) -> Iterator[_Row]:
    """Every table whose heading has a wall time; a row is named by the section and its first cell."""
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


def _line(number: int, name: str, cells: dict[str, str]) -> Line:
    figures = {
        what: next((_figure(cells[heading]) for heading in headings if heading in cells), None)
        for what, headings in _HEADINGS.items()
    }
    batches, batch = figures["batches"], figures["batch"]
    return Line(
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
    except UserError:  # somebody's own
        return None


def _figure(text: str) -> Figure | None:
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
    return Figure(value, 0.5 * 10.0 ** (int(exponent or 0) - places))
