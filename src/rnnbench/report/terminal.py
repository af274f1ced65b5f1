"""The output of `rnnbench show`: one table per workload, phase, device and precision, cut to the terminal's width."""

from collections.abc import Iterable, Sequence

from rnnbench import units
from rnnbench.analysis.row import Row, memory_of, row_id, short_names, shown_status
from rnnbench.domain.result import Launch
from rnnbench.report.describe import describe_gpus, describe_method, describe_nodes
from rnnbench.report.document import find_node, ranked_rows, unranked_rows
from rnnbench.store import Contents
from rnnbench.text import RULE, Column, render_fitted, shortened

COLUMNS = (
    Column("system"),
    Column("wall", right=True),
    Column("95 % interval", drop=1),
    Column("elapsed", right=True, drop=9),
    Column("seq/s", right=True, drop=4),
    Column("ratio", right=True),
    Column("first call", right=True, drop=6),
    Column("warm-up", right=True, drop=5),
    Column("memory", right=True, drop=3),
    Column("status"),
)

#: Before the status, in tables with a profiled row.
PROFILE_COLUMNS = (
    Column("operators", right=True, drop=2),
    Column("no operator", right=True, drop=2),
    Column("new batch size", drop=7),
    Column("new length", drop=8),
)

LEGEND = f"""\
wall        time of one batch: the mean of the launches, on the log scale; host-to-device copies included
interval    of the wall time, by Student's t over launches (one launch: with an allowance for others, docs/method.md)
{units.UNCERTAIN_MARK:12}{units.UNCERTAIN_MEANING}
elapsed     batches × wall; (×N) is the number of timed batches
seq/s       sequences per second: batch size over wall time
ratio       wall time over that of the best verified row of the same table
first call  the first batch, with tracing and compiling
warm-up     the first call and all batches until steady: some systems compile in the second call
memory      peak of the worker process; of the GPU for rows that ran on one
status      verified: same loss, gradients and updates as the float64 reference; ~ the machine was busy;
            not steady: still falling when sampling began, or drifting by much
below line  above the limit (faster than the machine can be), wrong (never best), failed, timeout, unsupported"""
PROFILE_LEGEND = """
operators   in one batch, by the framework's profiler in a separate launch; kernels and copies on a GPU
no operator the share of a batch in which no operator runs, or the device waits for the host
new …       cost of the first call with one more sequence or step: kept, rebuilt, uncounted, anew (docs/profiling.md)"""

Table = tuple[str, str, str, str]


def show_run(contents: Contents, rows: Iterable[Row], width: int | None = None, legend: bool = False) -> str:
    """The header and the tables, in lines of this width; None: as wide as they are, with every column and reason."""
    groups: dict[Table, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    parts = [_header(contents, width)]
    dropped: dict[str, None] = {}  # in order, once each
    hidden = False
    for key, group in groups.items():
        table, headings = _table(contents, key, group, width)
        parts.append(table)
        dropped |= dict.fromkeys(headings)
        hidden |= width is not None and any(row.status == "unsupported" for row in group)
    everything = [row for group in groups.values() for row in group]
    if legend:
        parts.append(LEGEND + (PROFILE_LEGEND if any(map(was_profiled, everything)) else ""))
    hints = [*([] if legend else _marks(everything)), *_other_types(contents), _hints(list(dropped), hidden, legend)]
    if any(hints):
        parts.append("\n".join(filter(None, hints)))
    if contents.damaged:
        parts.append(
            "damaged lines in launches.jsonl were skipped:\n" + "\n".join(f"  {line}" for line in contents.damaged)
        )
    return "\n\n".join(parts)


def _marks(rows: Sequence[Row]) -> list[str]:
    """What the marks mean that are in these tables: nobody should have to ask for that."""
    marks = [f"{units.UNCERTAIN_MARK} {units.UNCERTAIN_MEANING}"]
    return [
        *(marks if any(row.uncertain or row.ratio_uncertain for row in rows) else []),
        *(["~ the machine was busy while this row was measured"] if any(row.noisy for row in rows) else []),
    ]


def _other_types(contents: Contents) -> list[str]:
    """Which rows had another type than the one in their heading, by what their launches say."""
    launches = [record for record in contents.records if isinstance(record, Launch)]
    found = [one for one in launches if one.how_it_ran.startswith("computed in ")]
    return list(dict.fromkeys(f"{one.case.system} {one.case.precision}: {one.how_it_ran}" for one in found))


def _hints(dropped: Sequence[str], reasons_hidden: bool, legend: bool) -> str:
    """What was not printed, and the options that print it."""
    wide = [f"the columns {', '.join(dropped)}"] if dropped else []
    wide += ["why rows are unsupported"] if reasons_hidden else []
    hints = [f"--wide shows {' and '.join(wide)}"] if wide else []
    hints += [] if legend else ["--legend explains the columns"]
    return "; ".join(hints)


def _header(contents: Contents, width: int | None) -> str:
    run = contents.run
    machine, method = run.machine, run.method
    gpus = [f"GPU          {gpu}" for gpu in describe_gpus(contents)]
    nodes = [f"node         {node}" for node in describe_nodes(contents)]
    environments = ", ".join(f"{each.id} (Python {each.python_version})" for each in run.environments.values())
    lines = [
        f"run          {run.created}, rnnbench {run.tool.version} {run.tool.revision}".rstrip(),
        f"CPU          {machine.cpu}, {machine.cores} cores; workers pinned to "
        f"{','.join(map(str, method.cpus)) or 'nothing'}"
        f"{f', timed on {method.quiet_cpus} that are quiet' if method.quiet_cpus else ''}",
        *gpus,
        *nodes,
        f"system       {machine.system}, {machine.kernel}",
        f"environment  {environments or 'none'}",
        f"method       {describe_method(contents)}, seed {method.seed}",
    ]
    return "\n".join(line if width is None else shortened(line, width) for line in lines)


def _table(contents: Contents, key: Table, rows: list[Row], width: int | None) -> tuple[str, list[str]]:
    """One table with its title, and the headings of the columns that were dropped."""
    workload, phase, device, precision = key
    names = short_names(rows)
    ranked, unranked = ranked_rows(rows), unranked_rows(rows)
    unsupported = [names[row_id(row)] for row in unranked if row.status == "unsupported" and width is not None]
    if width is not None:
        unranked = [row for row in unranked if row.status != "unsupported"]
    profiled = any(was_profiled(row) for row in rows)
    columns: Sequence[Column] = (*COLUMNS[:-1], *PROFILE_COLUMNS, COLUMNS[-1]) if profiled else COLUMNS
    lines: Sequence[Sequence[str] | None] = [
        *(row_cells(row, names[row_id(row)], profiled) for row in ranked),
        *([RULE] if ranked and unranked else []),
        *(row_cells(row, names[row_id(row)], profiled) for row in unranked),
    ]
    shape = contents.run.workloads[workload]
    node = find_node(rows)
    where = f"   on {node}" if node else ""
    parts = [f"{workload} · {phase} · {device} · {precision}   (batch {shape.batch} × {shape.steps} steps){where}"]
    dropped: list[str] = []
    if lines:
        table, dropped = render_fitted(columns, lines, width, indent="  ")
        parts.append(table)
    if unsupported and width is not None:
        parts.append("  " + shortened(f"{len(unsupported)} unsupported: {', '.join(unsupported)}", width - 2))
    return "\n".join(parts), dropped


def row_cells(row: Row, name: str, profiled: bool = False) -> list[str]:
    """The texts of a row, one for each of `COLUMNS`; those of `PROFILE_COLUMNS` before the last if it was profiled."""
    status = shown_status(row)
    measured = row.wall_s is not None
    return [
        name,
        units.marked(units.seconds(row.wall_s), row.uncertain),
        units.span(row.wall_low_s, row.wall_high_s, row.wall_s),
        f"{units.seconds(row.elapsed_s)} (×{row.batches})" if measured else "–",
        units.figures(row.sequences_per_s) if row.sequences_per_s is not None else "–",
        units.marked(units.times(row.ratio), row.ratio_uncertain),
        units.seconds(row.first_call_s),
        units.seconds(row.warm_up_s),
        units.size(memory_of(row)),
        *(profile_cells(row) if profiled else ()),
        f"{status}: {row.reason}" if row.reason else status,
    ]


def was_profiled(row: Row) -> bool:
    return row.operators is not None or row.new_batch_s is not None


def profile_cells(row: Row) -> list[str]:
    return [
        f"{row.operators:,.0f}" if row.operators is not None else "–",
        units.share(row.host_share),
        f"{units.seconds(row.new_batch_s)}, {row.new_batch}" if row.new_batch else "–",
        f"{units.seconds(row.new_length_s)}, {row.new_length}" if row.new_length else "–",
    ]
