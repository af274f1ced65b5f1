"""The output of `rnnbench explain`: what to do, in ten lines; or every sentence, with tables."""

from collections.abc import Sequence

from rnnbench import units
from rnnbench.analysis.gap import BreakEven, Recovered
from rnnbench.analysis.limit import Peak
from rnnbench.analysis.row import Group, Row, RowId, is_verified, memory_of, row_id, short_names
from rnnbench.domain.run import Run
from rnnbench.report.document import Analysis, GroupAnalysis
from rnnbench.text import WIDTH, Column, render_fitted, wrapped
from rnnbench.units import count_interval, percent_interval

COLUMNS = (
    Column("system"),
    Column("wall", right=True),
    Column("95 % interval", drop=1),
    Column("ratio", right=True),
    Column("of the limit", right=True, drop=4),
    Column("of eager", right=True, drop=3),
    Column("recovered", drop=2),
    Column("compile", right=True, drop=6),
    Column("pays after", drop=5),
    Column("memory", right=True, drop=7),
    Column("at full size", drop=8),
)
LEGEND = f"""\
ratio         wall time over that of the best verified row; for fine/eager it is the gap, the price of flexibility
of the limit  the least time the machine needs for this work, divided by the wall time
of eager      wall time over that of the same program run eagerly by the same framework
recovered     the share of the gap, on a log scale, that this execution of the fine-grained program closes
compile       first call and warm-up, less the time of as many steady batches
pays after    batches until the saved time makes up for the compile time; never: it is slower than eager
memory        peak of the worker process; of the GPU for rows that ran on one
at full size  what of the timed program itself was checked; – where only its small version was
{units.UNCERTAIN_MARK:14}{units.UNCERTAIN_MEANING}
Only verified rows are shown. A difference counts when its whole 95 % interval lies beyond 2 %."""


_LINES = 10  # of all advice together, where there are one or two groups
_FEWEST_LINES = 4  # of a group


def show_advice(analysis: Analysis, groups: Sequence[GroupAnalysis], width: int) -> str:
    """What to do, in about ten lines; the most important first, and what does not fit is in the details."""
    several = len(analysis.rows) > 1
    most = max(_FEWEST_LINES, _LINES // max(1, len(groups)) - 2)
    lines: list[str] = []
    for each in groups:
        lines.append(f"{each.group}   (run {each.group.run + 1})" if several else str(each.group))
        shown: list[str] = []
        for advice in each.advice:
            wanted = wrapped(advice.text, "  ", "    ", min(width, WIDTH)).split("\n")
            if not shown or len(shown) + len(wanted) <= most:
                shown += wanted
        lines += shown
    lines += [wrapped(caution, "", "  ", min(width, WIDTH)) for caution in find_cautions(analysis, groups)]
    return "\n".join(lines)


def find_cautions(analysis: Analysis, groups: Sequence[GroupAnalysis]) -> list[str]:
    """What is wrong with these numbers, over all groups, and what to do about it: one line."""
    chosen = {each.group for each in groups}
    rows = [row for number, rows in enumerate(analysis.rows) for row in rows if Group(number, *row.group) in chosen]
    verified = [row for row in rows if is_verified(row)]
    found = (
        ("with one launch", sum(row.launches == 1 for row in verified), "--launches 3"),
        ("on a busy machine", sum(row.noisy for row in verified), "--resume RUN --repeats 2"),
        ("not steady", sum(row.steady is False for row in verified), "--effort thorough"),
        ("computing something else", sum(row.status == "wrong" for row in rows), "see `rnnbench show`"),
    )
    words = [f"{count} {what} ({remedy})" for what, count, remedy in found if count]
    return [f"Before you rely on it, of {len(rows)} rows: {', '.join(words)}."] if words else []


def show_details(
    analysis: Analysis, runs: Sequence[Run], groups: Sequence[GroupAnalysis], width: int | None = None
) -> str:
    """Every sentence about these groups, with tables and a legend."""
    parts = ["\n".join(_machine(number, run, analysis.peaks, len(runs) > 1) for number, run in enumerate(runs))]
    for each in groups:
        number = each.group.run
        rows = [row for row in analysis.rows[number] if Group(number, *row.group) == each.group]
        parts.append(_group(each, rows, len(runs) > 1, width))
    parts.append(LEGEND)
    return "\n\n".join(parts)


def _machine(number: int, run: Run, peaks: Sequence[Peak], several: bool) -> str:
    name = f"run {number + 1}" if several else "run"
    lines = [f"{name:6} {run.created}, {run.machine.cpu}, {run.method.threads} threads"]
    lines += [f"       {gpu.name}" for gpu in run.machine.gpus]
    lines += [f"       node {node}: {machine.cpu}" for node, machine in run.machines.items()]
    for peak in peaks:
        if peak.run == number:
            place = f"{peak.node} {peak.device}" if peak.node else peak.device
            lines.append(
                f"limit  {place} {peak.precision}: {units.rate(peak.flops_per_s, 'FLOP')} in matrix products"
                f" ({peak.flops_environment}), {units.rate(peak.bytes_per_s, 'B')} in copies"
                f" ({peak.bytes_environment}){', measured while the machine was busy' if peak.noisy else ''}"
            )
    if not any(peak.run == number for peak in peaks):
        lines.append("limit  not measured in this run")
    return "\n".join(lines)


def _group(analysis: GroupAnalysis, rows: Sequence[Row], several: bool, width: int | None) -> str:
    group, least = analysis.group, analysis.least
    lines = [f"{group}   (run {group.run + 1})" if several else str(group)]
    lines += [wrapped(statement.text, "  • ", "    ") for statement in analysis.summary]
    if least is not None:
        bound = "matrix products" if least.bound_by == "products" else least.bound_by
        lines.append(
            f"  Work of one batch: {units.figures(least.flops / 1e9)} GFLOP, {units.size(least.bytes)}; at least"
            f" {units.seconds(least.seconds)} on this machine, bound by {bound}."
        )
    verified = sorted((row for row in rows if is_verified(row)), key=lambda row: row.wall_s or 0.0)
    if not verified:
        return "\n".join(lines)
    names = short_names(rows)
    recovered = {each.row: each for gap in analysis.gaps for each in gap.recovered}
    break_evens = {each.row: each for each in analysis.break_evens}
    cells = [_cells(row, names, recovered.get(row_id(row)), break_evens.get(row_id(row))) for row in verified]
    return "\n".join(lines) + "\n\n" + render_fitted(COLUMNS, cells, width, indent="  ")[0]


def _cells(row: Row, names: dict[RowId, str], recovered: Recovered | None, break_even: BreakEven | None) -> list[str]:
    return [
        names[row_id(row)],
        units.marked(units.seconds(row.wall_s), row.uncertain),
        units.span(row.wall_low_s, row.wall_high_s, row.wall_s),
        units.marked(units.times(row.ratio), row.ratio_uncertain),
        "–" if row.limit_share is None else units.marked(f"{100 * row.limit_share:.1f} %", row.uncertain),
        _of_eager(break_even) if break_even else "",
        percent_interval(recovered.share) if recovered and recovered.share else "",
        units.seconds(row.compile_s),
        _pays_after(break_even) if break_even else "",
        units.size(memory_of(row)),
        row.checked or "–",
    ]


def _of_eager(break_even: BreakEven) -> str:
    return units.marked(units.times(break_even.against_eager.estimate), break_even.against_eager.uncertain)


def _pays_after(break_even: BreakEven) -> str:
    if break_even.batches is not None:
        return f"{count_interval(break_even.batches)} batches"
    return "never" if break_even.verdict == "slower" else "no difference seen"
