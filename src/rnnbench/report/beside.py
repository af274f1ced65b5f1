"""Published rows beside measured ones: what the same program took then and there, and what it takes here."""

from typing import NamedTuple

from rnnbench.analysis.rows import Row
from rnnbench.published import Published, published_rows
from rnnbench.report.document import Document


class Beside(NamedTuple):
    """One published row, and the measured one that stands for it, where there is one."""

    published: Published
    run: str = ""
    measured: Row | None = None

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
    groups = {(panel.group.workload, panel.group.phase) for panel in document.panels}
    found: list[Beside] = []
    for one in published_rows():
        if (one.workload, one.phase) in groups and one.wall_s is not None:
            same = measured.get((one.workload, one.phase, one.device, one.seed_label.casefold()), [])
            found += [Beside(one, name, row) for name, row in same] or [Beside(one)]
    return found
