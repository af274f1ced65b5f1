"""`report.html`: one file that contains everything and works without a network.

Text from a run reaches the page in three ways, and each is escaped: as text of the template (by Jinja2), as JSON that
cannot end its element, and inside the drawings (by Vega). The template marks as safe only the last two and the
page's own style and script. As a second defence, a content security policy allows only this script, by its hash.
"""

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import msgspec
from jinja2 import Environment, FunctionLoader, StrictUndefined

from rnnbench import units
from rnnbench.analysis.row import Group, Row, RowId, memory_of, row_id, shown_status
from rnnbench.domain.ability import MEANINGS
from rnnbench.domain.case import Case
from rnnbench.domain.result import Launch, Verification
from rnnbench.published.rows import SOURCES
from rnnbench.published.sections import compare_with_published
from rnnbench.report.abilities import price_lines, report_rows
from rnnbench.report.charts import theme
from rnnbench.report.charts.gallery import FILES_ONLY, Chart
from rnnbench.report.describe import command_for_row, describe_gpus, describe_method, describe_nodes
from rnnbench.report.document import UNRANKED_STATUSES, Document, find_node, is_ranked, machine_name
from rnnbench.report.opening import first_group, make_cards, make_matrix
from rnnbench.report.terminal import LEGEND, PROFILE_LEGEND, was_profiled
from rnnbench.store import Contents
from rnnbench.text import script_json
from rnnbench.version import __version__

#: Each uses only those before it.
SCRIPTS = ("elements", "format", "data", "state", "samples", "hint", "details", "table", "main")


def as_html(document: Document, charts: list[Chart]) -> bytes:
    environment = Environment(
        loader=FunctionLoader(read_part),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"seconds": units.seconds, "times": units.times, "marked": units.marked, "row_id": row_id}
    script = '"use strict";\n(() => {\n' + "\n".join(read_part(f"{name}.js") for name in SCRIPTS) + "})();\n"
    published = compare_with_published(document.names, document.analysis.rows)
    shown = [chart for chart in charts if chart.kind not in FILES_ONLY]
    page = environment.from_string(read_part("template.html")).render(
        title=f"What flexibility costs: {_machines(document)}",
        machines=_machines(document),
        cards=make_cards(document),
        matrix=make_matrix(document),
        opens=first_group(document),
        numbers=_row_numbers(document),
        tones={name: number for number, name in enumerate(frameworks(document))},
        version=__version__,
        several=document.has_several_runs,
        runs=[_run_facts(name, contents) for name, contents in zip(document.names, document.runs, strict=True)],
        charts=shown,
        legend=_legend(document),
        claims=document.analysis.claims,
        abilities={
            "headings": list(MEANINGS.values()),
            "rows": report_rows(document),
            "prices": price_lines(document.analysis.prices),
        },
        published=published,
        sources=list(dict.fromkeys(SOURCES[row.published.source] for row in published)),
        style=colours(frameworks(document)) + read_part("style.css"),
        script=script,
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=page_data(document, shown),
    )
    return page.encode()


def read_part(name: str) -> str:
    return files("rnnbench.report").joinpath("page", name).read_text(encoding="utf-8")


def _machines(document: Document) -> str:
    machines = dict.fromkeys(
        contents.run.machine.gpus[0].name if contents.run.machine.gpus else contents.run.machine.cpu
        for contents in document.runs
    )
    return ", ".join(machines)


#: Columns that only the page's table has.
_OWN_LEGEND = """
compiling   first call and warm-up, less the time of as many steady batches
of limit    the least time the machine needs for this work, divided by the wall time"""


def _legend(document: Document) -> list[tuple[str, str]]:
    """The columns of the page's table, and what they mean."""
    profiled = any(was_profiled(row) for rows in document.analysis.rows for row in rows)
    text = LEGEND + _OWN_LEGEND + (PROFILE_LEGEND if profiled else "")
    return [(line[:12].strip(), line[12:]) for line in text.splitlines() if not line.startswith("warm-up")]


def _row_numbers(document: Document) -> list[dict[RowId, int]]:
    """For each panel, the numbers of its rows in the page's data."""
    numbers: list[dict[RowId, int]] = [{} for _ in document.panels]
    groups = {panel.group: number for number, panel in enumerate(document.panels)}
    rows = ((run, row) for run, rows in enumerate(document.analysis.rows) for row in rows)
    for number, (run, row) in enumerate(rows):
        numbers[groups[Group(run, *row.group)]][row_id(row)] = number
    return numbers


def _run_facts(name: str, contents: Contents) -> dict[str, Any]:
    run = contents.run
    machine, method = run.machine, run.method
    caches = ", ".join(f"{level} {size}" for level, size in machine.caches.items())
    gpus = "; ".join(describe_gpus(contents))
    processor = f"{machine.cpu}, {machine.cores} cores, {machine.cpus} processors"
    facts = [
        ("made", run.created[:16].replace("T", " ") + " UTC"),
        ("processor", processor),
        ("caches", caches),
        ("memory", units.size(machine.memory_bytes)),
        ("GPU", gpus or "none"),
        ("nodes", "; ".join(describe_nodes(contents))),
        ("system", f"{machine.system}, {machine.kernel}"),
        ("load at the start", "" if machine.load is None else f"{machine.load:.2f}"),
        ("method", f"{describe_method(contents)}, seed {method.seed}, at most {method.limit_seconds:g} s a launch"),
        ("denormals", "flushed to zero" if method.flush_denormals else "kept"),
        ("by", f"rnnbench {run.tool.version} {run.tool.revision}".strip()),
        ("command", " ".join(("rnnbench", *run.command))),
    ]
    return {
        "name": name,
        "facts": [(heading, value) for heading, value in facts if value],
        "environments": list(run.environments.values()),
        "damaged": contents.damaged,
    }


def colours(names: Iterable[str]) -> str:
    """The theme's colours for the page, its drawings and these frameworks; print is always light."""
    roles = {"ink": theme.INK, "muted": theme.MUTED, "grid": theme.GRID, "line": theme.LINE}
    roles |= {"ground": theme.GROUND, "limit": theme.LIMIT}
    tones = [look.tone for look in theme.looks(names).values()]
    light = ":root{" + "".join(f"--{name}:{tone.light};" for name, tone in roles.items()) + "}"
    light += "".join(f".tone-{number}{{--tone:{tone.light}}}" for number, tone in enumerate(tones))
    dark = ":root{" + "".join(f"--{name}:{tone.dark};" for name, tone in roles.items()) + "}"
    dark += "".join(f".tone-{number}{{--tone:{tone.dark}}}" for number, tone in enumerate(tones))
    return f"{light}\n@media screen and (prefers-color-scheme:dark){{{dark}{theme.dark_css('.chart ')}}}\n"


#: The fields of a row that go into the page's data unchanged; `_rows` adds the others of FIELDS.
_ROW_FIELDS = (
    "system", "framework", "environment", "status", "reason", "wall_s", "wall_low_s", "wall_high_s", "uncertain",
    "elapsed_s", "batches", "sequences_per_s", "ratio", "ratio_low", "ratio_high", "ratio_uncertain", "best",
    "import_s", "build_s", "first_call_s", "warm_up_s", "compile_s", "limit_s", "limit_share", "parameter_count",
    "threads", "noisy", "steady", "checked", "stage", "log_tail", "description", "seed_label", "operators",
    "host_share", "bottleneck", "new_batch_s", "new_batch", "new_length_s", "new_length",
)  # fmt: skip
FIELDS = ("group", "counts", "shown", "memory_bytes", "command", "proof", "launches", *_ROW_FIELDS)


def page_data(document: Document, charts: list[Chart]) -> str:
    """JSON for a script element."""
    groups = {panel.group: number for number, panel in enumerate(document.panels)}
    proofs = _Proofs()
    rows = [
        fields
        for number, contents in enumerate(document.runs)
        for fields in _rows(contents, number, document.analysis.rows[number], groups, proofs)
    ]
    content = {
        "runs": [
            {"name": name, "created": contents.run.created}
            for name, contents in zip(document.names, document.runs, strict=True)
        ],
        "groups": [_group(document, number) for number in range(len(document.panels))],
        "opens": first_group(document),
        "charts": [{"group": chart.panel, "kind": chart.kind} for chart in charts],
        "frameworks": frameworks(document),
        "below": UNRANKED_STATUSES,
        "environments": [_environments(contents) for contents in document.runs],
        "quantities": list(proofs.quantities),
        "proofs": proofs.entries,
        "fields": FIELDS,
        "rows": rows,
    }
    return script_json(msgspec.json.encode(content).decode())


def frameworks(document: Document) -> list[str]:
    """Sorted by name: a framework's index is the number of its colour in the page."""
    return sorted({row.framework for rows in document.analysis.rows for row in rows})


def _group(document: Document, number: int) -> dict[str, Any]:
    panel = document.panels[number]
    group = panel.group
    run = document.runs[group.run].run
    return {
        "run": group.run,
        "workload": group.workload,
        "phase": group.phase,
        "device": group.device,
        "precision": group.precision,
        "machine": machine_name(run, group.device, find_node(panel.rows)),
    }


def _environments(contents: Contents) -> dict[str, str]:
    return {
        name: f"{environment.framework} {environment.version}, Python {environment.python_version}"
        for name, environment in contents.run.environments.items()
    }


class _Proofs:
    """The verifications, and the names of their quantities, which the entries refer to by number."""

    def __init__(self) -> None:
        self.entries: list[list[Any]] = []
        self.quantities: dict[str, int] = {}

    def add(self, proof: Verification) -> int:
        figures = [
            (self.quantities.setdefault(figure.quantity, len(self.quantities)), figure.error, figure.tolerance)
            for figure in proof.figures
        ]
        self.entries.append([proof.verdict, proof.reason, proof.case.workload, proof.log_tail, figures])
        return len(self.entries) - 1


def _rows(
    contents: Contents, run: int, rows: tuple[Row, ...], groups: dict[Group, int], proofs: _Proofs
) -> list[list[Any]]:
    launches: dict[tuple[str, ...], list[Launch]] = {}
    proof_numbers: dict[tuple[str, ...], int] = {}
    for record in contents.records:
        if isinstance(record, Launch):
            launches.setdefault(_key(record.case), []).append(record)
        elif isinstance(record, Verification):
            proof_numbers[_key(record.case)] = proofs.add(record)
    proved_on = contents.run.proved_on
    entries: list[list[Any]] = []
    for row in rows:
        proof = proof_numbers.get((proved_on.get(row.workload, ""), *_key(row)[1:]))
        entries.append(
            [
                groups[Group(run, *row.group)],
                is_ranked(row),
                shown_status(row),
                memory_of(row),
                "" if row.status == "unsupported" else command_for_row(contents.run, row),
                proof,
                [_launch(launch) for launch in launches.get(_key(row), ())],
                *(getattr(row, name) for name in _ROW_FIELDS),
            ]
        )
    return entries


def _key(case: Case | Row) -> tuple[str, ...]:
    """The same for a case and its row."""
    return (case.workload, case.system, case.phase, case.device, case.precision, case.environment)


def _launch(launch: Launch) -> list[Any]:
    """Round, start, outcome, noisy, versions, batches of each block (one number if all are equal), nanoseconds."""
    sizes = [sample.batches for sample in launch.samples]
    equal = len(set(sizes)) == 1
    return [
        launch.round,
        launch.started,
        launch.outcome,
        launch.noisy,
        launch.versions,
        sizes[0] if equal else sizes,
        [round(sample.seconds * 1e9) for sample in launch.samples],
    ]
