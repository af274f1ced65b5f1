"""`report.html`: one file with everything in it, that works from a disk without a network.

What comes from a run reaches the page in three ways, each of them escaped: as text of the template (Jinja2's
autoescape), as JSON that cannot end its element, and inside the drawings, whose text Vega escapes. What the
template marks as safe is these two and the page's own style and script. A content security policy allows that
script by its hash and nothing else, should an escape ever fail.
"""

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import msgspec
from jinja2 import Environment, StrictUndefined

from rnnbench import units
from rnnbench.analysis.row import Group, Row, memory_of
from rnnbench.domain.result import Launch, Verification
from rnnbench.published.rows import SOURCES
from rnnbench.published.sections import compare_with_published
from rnnbench.report.charts import theme
from rnnbench.report.charts.gallery import Chart
from rnnbench.report.describe import command_for_row, describe_gpus, describe_method
from rnnbench.report.document import UNRANKED_STATUSES, Document, is_ranked, machine_name
from rnnbench.report.terminal import LEGEND
from rnnbench.store import Contents
from rnnbench.version import __version__

#: In the order in which they build on each other.
SCRIPTS = ("elements", "format", "data", "state", "samples", "hint", "details", "table", "main")


def as_html(document: Document, charts: list[Chart]) -> bytes:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"seconds": units.seconds, "times": units.times}
    script = '"use strict";\n(() => {\n' + "\n".join(read_part(f"{name}.js") for name in SCRIPTS) + "})();\n"
    published = compare_with_published(document.names, document.analysis.rows)
    page = environment.from_string(read_part("template.html")).render(
        title=_title(document),
        version=__version__,
        several=document.several,
        runs=[_run(name, contents) for name, contents in zip(document.names, document.runs, strict=True)],
        charts=charts,
        legend=[(line[:12].strip(), line[12:]) for line in LEGEND.splitlines()],
        claims=document.analysis.claims,
        published=published,
        sources=list({id(one): one for one in (SOURCES[row.published.source] for row in published)}.values()),
        style=colours(frameworks(document)) + read_part("style.css"),
        script=script,
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=page_data(document, charts),
    )
    return page.encode()


def read_part(name: str) -> str:
    return files("rnnbench.report").joinpath("page", name).read_text(encoding="utf-8")


def _title(document: Document) -> str:
    machines = dict.fromkeys(
        contents.run.machine.gpus[0].name if contents.run.machine.gpus else contents.run.machine.cpu
        for contents in document.runs
    )
    return f"What flexibility costs: {', '.join(machines)}"


def _run(name: str, contents: Contents) -> dict[str, Any]:
    run = contents.run
    machine, method = run.machine, run.method
    caches = ", ".join(f"{level} {size}" for level, size in machine.caches.items())
    gpus = "; ".join(describe_gpus(contents))
    processor = f"{machine.cpu}, {machine.cores} cores, {machine.cpus} processors"
    facts = [
        ("processor", processor),
        ("caches", caches),
        ("memory", units.size(machine.memory_bytes)),
        ("GPU", gpus or "none"),
        ("system", f"{machine.system}, {machine.kernel}"),
        ("load at the start", "" if machine.load is None else f"{machine.load:.2f}"),
        ("method", f"{describe_method(contents)}, seed {method.seed}, at most {method.limit_seconds:g} s a launch"),
        ("denormals", "flushed to zero" if method.flush_denormals else "kept"),
        ("made by", f"rnnbench {run.tool.version} {run.tool.revision}".strip()),
        ("command", " ".join(("rnnbench", *run.command))),
    ]
    return {
        "name": name,
        "created": run.created[:16].replace("T", " ") + " UTC",
        "machine": "; ".join(filter(None, (gpus, processor))),
        "system": machine.system,
        "method": describe_method(contents),
        "facts": [(heading, value) for heading, value in facts if value],
        "environments": list(run.environments.values()),
        "damaged": contents.damaged,
    }


def colours(names: Iterable[str]) -> str:
    """The theme's colours for the page, its drawings and these frameworks; paper is always light."""
    roles = {"ink": theme.INK, "muted": theme.MUTED, "grid": theme.GRID, "line": theme.LINE}
    roles |= {"ground": theme.GROUND, "limit": theme.LIMIT}
    tones = [look.tone for look in theme.looks(names).values()]
    light = ":root{" + "".join(f"--{name}:{tone.light};" for name, tone in roles.items()) + "}"
    light += "".join(f".tone-{number}{{--tone:{tone.light}}}" for number, tone in enumerate(tones))
    dark = ":root{" + "".join(f"--{name}:{tone.dark};" for name, tone in roles.items()) + "}"
    dark += "".join(f".tone-{number}{{--tone:{tone.dark}}}" for number, tone in enumerate(tones))
    return f"{light}\n@media screen and (prefers-color-scheme:dark){{{dark}{theme.dark_css('.chart ')}}}\n"


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
        "below": UNRANKED_STATUSES,
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
                is_ranked(row),
                memory_of(row),
                "" if row.status == "unsupported" else command_for_row(contents.run, row),
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
