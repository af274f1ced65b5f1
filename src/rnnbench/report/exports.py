"""The rows for other programs: `results.csv`, one flat line each, and `results.json`, with all that was found."""

import csv
import io
from typing import Any

import msgspec

from rnnbench import __version__
from rnnbench.analysis.rows import Row
from rnnbench.environments.environment import Environment
from rnnbench.report.document import Document

SCHEMA = 1

_FIELDS = [field.name for field in msgspec.structs.fields(Row)]


def as_csv(document: Document) -> bytes:
    """Every field of every row, after the run's name. Numbers are written so that they read back the same."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", *_FIELDS])
    for name, rows in zip(document.names, document.analysis.rows, strict=True):
        for row in rows:
            writer.writerow([name, *msgspec.structs.astuple(row)])
    return text.getvalue().encode()


def as_json(document: Document) -> bytes:
    """Runs without samples, which are in their folders; intervals are [low, estimate, high]."""
    runs: list[dict[str, Any]] = []
    for name, contents in zip(document.names, document.runs, strict=True):
        run = contents.run
        runs.append(
            {
                "name": name,
                "created": run.created,
                "command": run.command,
                "tool": run.tool,
                "machine": run.machine,
                "method": run.method,
                "workloads": run.workloads,
                "environments": {name: _public(one) for name, one in run.environments.items()},
                "damaged": contents.damaged,
            }
        )
    analysis = document.analysis
    content = {
        "schema": SCHEMA,
        "rnnbench": __version__,
        "runs": runs,
        "rows": [
            {"run": name, **msgspec.structs.asdict(row)}
            for name, rows in zip(document.names, analysis.rows, strict=True)
            for row in rows
        ],
        "peaks": analysis.peaks,
        "groups": analysis.groups,
        "claims": analysis.claims,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def _public(environment: Environment) -> dict[str, Any]:
    """Without the paths of the machine it was made on: a report is for others."""
    fields = msgspec.structs.asdict(environment)
    return {name: value for name, value in fields.items() if name not in ("python", "folder")}
