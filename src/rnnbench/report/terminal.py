"""The output of `rnnbench show`: one table per workload, phase, device and precision, and a legend."""

from collections.abc import Iterable

from rnnbench import units
from rnnbench.analysis.row import Row, memory_of, row_id, short_names, shown_status
from rnnbench.report.describe import describe_gpus, describe_method, describe_nodes
from rnnbench.report.document import find_node, ranked_rows, unranked_rows
from rnnbench.store import Contents
from rnnbench.text import RULE, Column, render_table

COLUMNS = (
    Column("system"),
    Column("wall", right=True),
    Column("95 % interval"),
    Column("elapsed", right=True),
    Column("seq/s", right=True),
    Column("ratio", right=True),
    Column("first call", right=True),
    Column("warm-up", right=True),
    Column("memory", right=True),
    Column("status"),
)

#: Before the status, in tables with a profiled row.
PROFILE_COLUMNS = (
    Column("operators", right=True),
    Column("no operator", right=True),
    Column("new batch size"),
    Column("new length"),
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


def show_run(contents: Contents, rows: Iterable[Row]) -> str:
    """The header, the tables and the legend."""
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    parts = [_header(contents)]
    parts += [_group(contents, key, group) for key, group in groups.items()]
    profiled = any(was_profiled(row) for group in groups.values() for row in group)
    parts.append(LEGEND + (PROFILE_LEGEND if profiled else ""))
    if contents.damaged:
        parts.append(
            "damaged lines in launches.jsonl were skipped:\n" + "\n".join(f"  {line}" for line in contents.damaged)
        )
    return "\n\n".join(parts)


def _header(contents: Contents) -> str:
    run = contents.run
    machine, method = run.machine, run.method
    gpus = "".join(f"\nGPU          {gpu}" for gpu in describe_gpus(contents))
    nodes = "".join(f"\nnode         {node}" for node in describe_nodes(contents))
    environments = ", ".join(f"{each.id} (Python {each.python_version})" for each in run.environments.values())
    return (
        f"run          {run.created}, rnnbench {run.tool.version} {run.tool.revision}".rstrip()
        + f"\nCPU          {machine.cpu}, {machine.cores} cores; workers pinned to "
        f"{','.join(map(str, method.cpus)) or 'nothing'}"
        f"{f', timed on {method.quiet_cpus} that are quiet' if method.quiet_cpus else ''}"
        f"{gpus}"
        f"{nodes}"
        f"\nsystem       {machine.system}, {machine.kernel}"
        f"\nenvironment  {environments or 'none'}"
        f"\nmethod       {describe_method(contents)}, seed {method.seed}"
    )


def _group(contents: Contents, key: tuple[str, str, str, str], rows: list[Row]) -> str:
    workload, phase, device, precision = key
    names = short_names(rows)
    ranked, unranked = ranked_rows(rows), unranked_rows(rows)
    profiled = any(was_profiled(row) for row in rows)
    lines: list[list[str] | None] = [_cells(row, names[row_id(row)], profiled) for row in ranked]
    lines += [RULE] if ranked and unranked else []
    lines += [_cells(row, names[row_id(row)], profiled) for row in unranked]
    shape = contents.run.workloads[workload]
    title = f"{workload} · {phase} · {device} · {precision}   (batch {shape.batch} × {shape.steps} steps)"
    if node := find_node(rows):
        title += f"   on {node}"
    columns = (*COLUMNS[:-1], *PROFILE_COLUMNS, COLUMNS[-1]) if profiled else COLUMNS
    return title + "\n" + render_table(columns, lines, indent="  ")


def _cells(row: Row, name: str, profiled: bool) -> list[str]:
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
