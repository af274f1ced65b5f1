"""`report.md`, laid out as in Carrot (2019): environment, model, then a table for each granularity and device."""

from collections.abc import Iterator, Sequence

from rnnbench import units
from rnnbench.analysis.row import Row, memory_of, shown_status
from rnnbench.domain.workload import Workload
from rnnbench.published.sections import claims_as_markdown, compare_with_published, published_as_markdown
from rnnbench.report.abilities import report_markdown
from rnnbench.report.charts.gallery import Chart
from rnnbench.report.describe import describe_gpus, describe_method, describe_nodes
from rnnbench.report.document import Document, Panel, find_node, ranked_rows, unranked_rows
from rnnbench.report.terminal import profile_cells, was_profiled
from rnnbench.store import Contents
from rnnbench.text import escape_markdown, markdown_block, markdown_code, markdown_table

#: The headings of Carrot (2019), and the granularities in each table.
CLASSES = (
    ("LSTM Network Implemented by Fine-grained Operators", ("fine", "packed")),
    ("Static LSTM Cell", ("cell",)),
    ("CuDNN and Other Monolithic LSTM", ("layer", "stack")),
)
DEVICES = {"cpu": "CPU", "cuda": "GPU"}
PHASES = {"forward": "forward-only", "train": "entire-training"}
HEADINGS = (
    "",
    "Wall Time (s)",
    "Elapsed Time (s)",
    "Sequence per Second",
    "Batches",
    "95 % Interval (s)",
    "Ratio",
    "First Call (s)",
    "Memory",
    "Of the Limit",
    "Status",
)
_NUMBERS = range(1, 10)

#: Before the status, in tables with a profiled row.
PROFILE_HEADINGS = ("Operators", "No Operator", "New Batch Size", "New Length")
_METRICS = """\
Metrics:

1.  elapsed time: time of all timed batches at the wall time. Their number is in the column Batches.
2.  wall time: average time of running one batch, with its 95 % interval by Student's t over launches.
3.  sequence per second.
4.  ratio: wall time over that of the best verified row with the same model, phase, device and precision.
5.  first call: the first batch, with tracing and compiling.
6.  of the limit: the least time the machine needs for the work of one batch, divided by the wall time.
7.  status: `verified` rows have the loss, gradients and updates of the float64 reference; `~` marks a busy machine.
    A `wrong` row computes something else: its time is shown, but it is never best. A row that is `not steady` was
    still falling when sampling began, or drifts by much. One `above the limit` is faster than the machine can be.
    `±` after a ratio or interval is """
_METRICS += units.UNCERTAIN_MEANING + "."
_PROFILE_METRICS = """
8.  operators: in one batch, by the framework's profiler; kernels and copies on a GPU. no operator: the share of a
    batch in which no operator runs, or the device waits for the host.
9.  new batch size, new length: what the first call with one more sequence or step costs, and whether the program was
    kept, rebuilt, or had to be built anew."""


def as_markdown(document: Document, charts: Sequence[Chart]) -> bytes:
    parts: list[str] = []
    for name, contents in zip(document.names, document.runs, strict=True):
        parts += [_heading("# Test Environment", name, document), *_environment(contents)]
    for workload in _workloads(document):
        parts += [f"# Model: {escape_markdown(workload.name)}", _model(workload)]
    for number, name in enumerate(document.names):
        parts += [_heading("# Test Results", name, document), *_results(document, number, charts)]
    parts += report_markdown(document)
    parts += claims_as_markdown(document.analysis.claims)
    parts += published_as_markdown(compare_with_published(document.names, document.analysis.rows))
    return ("\n\n".join(parts) + "\n").encode()


def _heading(text: str, run: str, document: Document) -> str:
    return f"{text}: {escape_markdown(run)}" if document.has_several_runs else text


def _environment(contents: Contents) -> Iterator[str]:
    run = contents.run
    machine = run.machine
    lines = [("OS", f"{machine.system}, {machine.kernel}")]
    for each in run.environments.values():
        name = " ".join(f"{each.framework} version".split())
        lines.append((name, f"{each.version} (environment {each.id}, Python {each.python_version})"))
    lines.append(("rnnbench", f"{run.tool.version} {run.tool.revision}, run of {run.created}"))
    yield markdown_block(lines)
    yield "## CPU information"
    caches = [(f"{' '.join(level.split())} cache", size) for level, size in machine.caches.items()]
    yield markdown_block(
        [
            ("Model name", machine.cpu),
            ("CPU(s)", str(machine.cpus)),
            ("Physical core(s)", str(machine.cores)),
            *caches,
            ("Memory", units.size(machine.memory_bytes)),
        ]
    )
    yield "## GPU information"
    yield "\n".join(map(escape_markdown, describe_gpus(contents))) or "none"
    if nodes := describe_nodes(contents):
        yield "## Nodes"
        yield "\n".join(f"- {escape_markdown(node)}" for node in nodes)


def _workloads(document: Document) -> list[Workload]:
    return list({name: each for run in document.runs for name, each in run.run.workloads.items()}.values())


def _model(workload: Workload) -> str:
    directions = "bidirectional" if workload.bidirectional else "unidirectional"
    lengths = f"{workload.shortest} to {workload.steps}" if workload.variable_length else str(workload.steps)
    lines = [
        *([("vocab_size", workload.vocabulary), ("embedding_dim", workload.embedding)] if workload.vocabulary else []),
        *([("features", workload.features)] if workload.features else []),
        ("num_layers", f"{workload.layers}, {directions}"),
        ("hidden_dim", workload.hidden),
        ("classes", f"{workload.classes} on {'every' if workload.head_on == 'every-step' else 'the last'} step"),
        ("loss", f"{workload.loss}, {workload.labels} labels" if workload.labels else workload.loss),
        ("seq_len", lengths),
        ("batch_size", workload.batch),
    ]
    return "\n".join(f"{number}.  `{name}` = {value}" for number, (name, value) in enumerate(lines, 1))


def _results(document: Document, run: int, charts: Sequence[Chart]) -> Iterator[str]:
    method = document.runs[run].run.method
    fixed = {"2018": "100 batches are discarded, 400 timed.", "2019": "10 batches are discarded, 50 timed."}
    how = fixed.get(method.protocol, "Batches are run until steady, then timed until the interval is narrow enough.")
    yield f"{how} ({escape_markdown(describe_method(document.runs[run]))}, seed {method.seed})"
    profiled = any(was_profiled(row) for row in document.analysis.rows[run])
    yield _METRICS + (_PROFILE_METRICS if profiled else "")
    panels = [(number, panel) for number, panel in enumerate(document.panels) if panel.group.run == run]
    for workload in dict.fromkeys(panel.group.workload for _, panel in panels):
        here = [(number, panel) for number, panel in panels if panel.group.workload == workload]
        yield f"## {escape_markdown(workload)}"
        for number, panel in here:
            yield from _summary(panel)
            yield from (
                f"![{escape_markdown(chart.description)}](charts/{chart.name}.svg)"
                for chart in charts
                if chart.panel == number
            )
        yield from _tables([panel for _, panel in here])


def _tables(panels: Sequence[Panel]) -> Iterator[str]:
    """Both phases of a device and precision are in one table, as in Carrot (2019)."""
    precisions = {panel.group.precision for panel in panels}
    profiled = any(was_profiled(row) for panel in panels for row in panel.rows)
    headings = (*HEADINGS[:-1], *PROFILE_HEADINGS, HEADINGS[-1]) if profiled else HEADINGS
    for heading, granularities in _classes(panels):
        places: dict[tuple[str, str], list[list[str]]] = {}
        for panel in panels:
            rows = [row for row in panel.rows if row.granularity in granularities]
            cells = [_cells(panel, row, profiled) for row in (*ranked_rows(rows), *unranked_rows(rows))]
            if cells:
                places.setdefault((panel.group.device, panel.group.precision), []).extend(cells)
        if places:
            yield f"### {heading}"
        for (device, precision), cells in places.items():
            yield f"#### {DEVICES[device]}" + (f", {precision}" if len(precisions) > 1 or precision != "fp32" else "")
            yield markdown_table(headings, cells, right=range(1, len(headings) - 1))


def _classes(panels: Sequence[Panel]) -> list[tuple[str, tuple[str, ...]]]:
    """CLASSES, and one more for granularities that only a third party's manifest has."""
    known = {name for _, names in CLASSES for name in names}
    others = {row.granularity for panel in panels for row in panel.rows} - known
    return [*CLASSES, *([("Other Granularities", tuple(sorted(others)))] if others else [])]


def _cells(panel: Panel, row: Row, profiled: bool) -> list[str]:
    name = f"{markdown_code(panel.name(row))} ({PHASES[row.phase]})"
    status = shown_status(row)
    status = escape_markdown(f"{status}: {row.reason}" if row.reason else status)
    profile = profile_cells(row) if profiled else []
    if row.wall_s is None:
        return [name, *[""] * len(_NUMBERS), *profile, status]
    return [
        name,
        units.precise(row.wall_s),
        units.precise(row.elapsed_s),
        units.precise(row.sequences_per_s),
        str(row.batches),
        units.marked(f"{units.precise(row.wall_low_s)} to {units.precise(row.wall_high_s)}", row.uncertain),
        units.marked(units.times(row.ratio), row.ratio_uncertain),
        units.precise(row.first_call_s),
        units.size(memory_of(row)),
        units.marked(units.share(row.limit_share), row.uncertain),
        *profile,
        status,
    ]


def _summary(panel: Panel) -> Iterator[str]:
    group = panel.group
    sentences = " ".join(statement.text for statement in panel.analysis.summary)
    place = f", on {escape_markdown(node)}" if (node := find_node(panel.rows)) else ""
    if sentences:
        yield f"**{group.phase} · {group.device} · {group.precision}{place}.** {escape_markdown(sentences)}"
