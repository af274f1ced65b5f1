"""Published rows beside measured ones: what the same program took then and there, and what it takes here."""

from collections.abc import Sequence
from typing import NamedTuple

from rnnbench.analysis.audit import audit_table
from rnnbench.analysis.rows import Row
from rnnbench.analysis.tables import read_table
from rnnbench.published import TABLES, Published, published_rows
from rnnbench.report.document import Document


class Beside(NamedTuple):
    """One published row, and the measured one that stands for it, where there is one."""

    published: Published
    run: str = ""
    measured: Row | None = None
    contradicts: bool = False  # the published row contradicts itself, so its time may be a misprint

    @property
    def times_faster(self) -> float | None:
        if self.measured is None or not self.measured.wall_s or self.published.wall_s is None:
            return None
        return self.published.wall_s / self.measured.wall_s


def published_beside(document: Document) -> list[Beside]:
    """All that was published about the report's workloads at their own sizes, in the order it was printed."""
    measured: dict[tuple[str, str, str, str], list[tuple[str, Row]]] = {}
    for name, rows in zip(document.names, document.analysis.rows, strict=True):
        for row in rows:
            if row.seed_label and row.status == "verified" and row.precision == "fp32":
                key = (row.workload, row.phase, row.device, row.seed_label.casefold())
                measured.setdefault(key, []).append((name, row))
    doubtful = _doubtful()
    groups = {(panel.group.workload, panel.group.phase) for panel in document.panels}
    found: list[Beside] = []
    for one in published_rows():
        if (one.workload, one.phase) in groups and one.wall_s is not None:
            same: Sequence[tuple[str, Row | None]] = measured.get(
                (one.workload, one.phase, one.device, one.seed_label.casefold()), []
            )
            pairs = same or [("", None)]
            found += [Beside(one, name, row, one in doubtful) for name, row in pairs]
    return found


def _doubtful() -> set[Published]:
    """The rows that `rnnbench audit` names."""
    lines = read_table(TABLES[0])
    rows = {line.number: row for line, row in zip(lines, published_rows(), strict=False)}
    return {rows[one.line.number] for one in audit_table(TABLES[0].name, lines, lines).suspects}
