"""What the page works with: everything about every row, as compact JSON that cannot end its script element.

A large run has half a million samples. So rows are arrays after one list of their fields, samples are whole
nanoseconds (the clock tells no more), and what rows share, their verifications and environments, is said once.
"""

from typing import Any

import msgspec

from rnnbench.analysis.best import memory_of
from rnnbench.analysis.names import Group
from rnnbench.analysis.rows import Row
from rnnbench.domain.result import Launch, Verification
from rnnbench.report.charts.gallery import Chart
from rnnbench.report.command import command
from rnnbench.report.document import Document, machine_name
from rnnbench.report.lines import BELOW, counts
from rnnbench.store.folder import Contents

#: Of a row, as they are; `fields` in the page's data names these and those that `_row` adds.
_PLAIN = (
    "system", "framework", "environment", "status", "reason", "wall_s", "wall_low_s", "wall_high_s", "elapsed_s",
    "batches", "sequences_per_s", "ratio", "ratio_low", "ratio_high", "best", "import_s", "build_s", "first_call_s",
    "warm_up_s", "compile_s", "limit_s", "limit_share", "parameter_count", "threads", "noisy", "stage", "log_tail",
    "description", "seed_label", "operators", "host_share", "bottleneck", "new_batch_s", "new_batch", "new_length_s",
    "new_length",
)  # fmt: skip
FIELDS = ("group", "counts", "memory_bytes", "command", "proof", "launches", *_PLAIN)


def page_data(document: Document, charts: list[Chart]) -> str:
    """JSON for a script element: every `<`, `>` and `&` in it is written as an escape."""
    groups = {panel.group: number for number, panel in enumerate(document.panels)}
    proofs = _Proofs()
    rows = [
        fields
        for number, contents in enumerate(document.runs)
        for fields in _rows(contents, number, document.analysis.rows[number], groups, proofs)
    ]
    content = {
        "runs": [
            {"name": name, "created": one.run.created} for name, one in zip(document.names, document.runs, strict=True)
        ],
        "groups": [_group(document, number) for number in range(len(document.panels))],
        "charts": [{"group": one.panel, "kind": one.kind} for one in charts],
        "frameworks": frameworks(document),
        "below": BELOW,
        "environments": [_environments(contents) for contents in document.runs],
        "quantities": list(proofs.quantities),
        "proofs": proofs.entries,
        "fields": FIELDS,
        "rows": rows,
    }
    text = msgspec.json.encode(content).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def frameworks(document: Document) -> list[str]:
    """In the order of their names, by which the page numbers their colours."""
    return sorted({row.framework for rows in document.analysis.rows for row in rows})


def _group(document: Document, number: int) -> dict[str, Any]:
    panel = document.panels[number]
    group = panel.group
    run = document.runs[group.run].run
    workload = run.workloads[group.workload]
    return {
        "run": group.run,
        "workload": group.workload,
        "phase": group.phase,
        "device": group.device,
        "precision": group.precision,
        "machine": machine_name(run, group.device),
        "shape": f"batch {workload.batch} × {workload.steps} steps",
        "summary": [{"kind": one.kind, "text": one.text} for one in panel.found.summary],
    }


def _environments(contents: Contents) -> dict[str, str]:
    return {
        name: f"{one.framework} {one.version}, Python {one.python_version}"
        for name, one in contents.run.environments.items()
    }


class _Proofs:
    """Verifications, each once, with the quantities' names told once for all."""

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []
        self.quantities: dict[str, int] = {}

    def add(self, proof: Verification) -> int:
        figures = [
            (self.quantities.setdefault(one.quantity, len(self.quantities)), one.error, one.tolerance)
            for one in proof.figures
        ]
        self.entries.append([proof.verdict, proof.reason, proof.case.workload, proof.log_tail, figures])
        return len(self.entries) - 1


def _rows(
    contents: Contents, run: int, rows: tuple[Row, ...], groups: dict[Group, int], proofs: _Proofs
) -> list[list[Any]]:
    launches: dict[tuple[str, ...], list[Launch]] = {}
    numbers: dict[tuple[str, ...], int] = {}
    for record in contents.records:
        if isinstance(record, Launch):
            launches.setdefault(_key(record.case), []).append(record)
        elif isinstance(record, Verification):
            numbers[_key(record.case)] = proofs.add(record)
    proved_on = contents.run.proved_on
    found: list[list[Any]] = []
    for row in rows:
        proof = numbers.get((proved_on.get(row.workload, ""), *_key(row)[1:]))
        found.append(
            [
                groups[Group(run, *row.group)],
                counts(row),
                memory_of(row),
                "" if row.status == "unsupported" else command(contents.run, row),
                proof,
                [_launch(one) for one in launches.get(_key(row), ())],
                *(getattr(row, name) for name in _PLAIN),
            ]
        )
    return found


def _key(case: Any) -> tuple[str, ...]:
    """A row has the names of its case."""
    return (case.workload, case.system, case.phase, case.device, case.precision, case.environment)


def _launch(launch: Launch) -> list[Any]:
    """Round, when, outcome, noisy, versions, batches of a block (one number where all are alike), nanoseconds."""
    sizes = [sample.batches for sample in launch.samples]
    alike = len(set(sizes)) == 1
    return [
        launch.round,
        launch.started,
        launch.outcome,
        launch.noisy,
        launch.versions,
        sizes[0] if alike else sizes,
        [round(sample.seconds * 1e9) for sample in launch.samples],
    ]
