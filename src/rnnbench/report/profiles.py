"""Profiles as text, Markdown and JSON: systems side by side, where their time goes, and what would help each."""

from collections.abc import Sequence
from typing import Any

import msgspec

from rnnbench import units
from rnnbench.analysis.limit import find_peaks
from rnnbench.analysis.profile_results import (
    ProductRate,
    ProfileResult,
    find_product_rate,
    find_profile_results,
    find_remedy,
)
from rnnbench.domain.profile import Profile, Reshape
from rnnbench.store import Contents
from rnnbench.text import (
    Column,
    escape_markdown,
    markdown_code,
    markdown_table,
    render_fitted,
    render_table,
    shortened,
    wrapped,
)

#: The figures of a row, in this order. Every share is one of the batch.
FIGURES = (
    "phase", "operators", "batch", "host", "busy", "no operator", "products", "element-wise", "others",
    "products' rate", "bottleneck", "new batch size", "new length",
)  # fmt: skip
_NUMBERS = (2, 3, 4, 5, 6, 7, 8, 9, 10)  # with the system before them

#: How soon a figure is dropped from a table with a line for each system, if the terminal is narrow.
_DROP = {"host": 8, "new length": 7, "new batch size": 6, "others": 5, "element-wise": 4, "busy": 3, "operators": 2}

LEGEND = """\
operators   in one batch, by the framework's profiler: those that call no others; on a GPU its kernels and copies
batch       time of one batch in the same process without the profiler; not a measurement, see `rnnbench run`
host        how long the host takes to issue the work of a batch; on a CPU nearly all of it
busy        how long at least one of these operators runs
no operator the share of a batch in which none runs: interpreter, dispatch, bookkeeping; on a GPU the device waits
products    the share of a batch in matrix products, and in operators for whole layers; then element-wise, others
rate        floating-point operations of the workload over the time in products; and its share of the machine's limit
bottleneck  what takes at least half of a batch; - if nothing does. ~ the machine was busy: shares may be off
new …       the first call with one more sequence or step, less a warm call. kept: nothing was built. rebuilt: the
            framework reported that it built again. uncounted: it ran, but the framework does not count builds. anew:
            the program refused the shape or computed something else, so a new one was built"""

FEW = 2  # at most so many rows of a table are also shown operator by operator
_SIDE_BY_SIDE = 6  # more systems have a line each
_WIDEST = 110


class _Shown(msgspec.Struct, frozen=True):
    """One profiled case, its name in its table, and the rate of its products."""

    result: ProfileResult
    name: str
    rate: ProductRate | None

    @property
    def label(self) -> str:
        return f"{self.name} {self.result.case.phase}"

    @property
    def remedy(self) -> str:
        granularity = self.result.case.system.split("/")[1]
        return find_remedy(self.result.bottleneck, self.rate, granularity) if self.result.bottleneck else ""


def show_profiles(contents: Contents, width: int | None = None, legend: bool = True) -> str:
    """The tables, a sentence and a line of advice for each row, and the most expensive operators if there are few."""
    parts = []
    for title, rows in _groups(contents):
        table = _side_by_side if len(rows) <= _SIDE_BY_SIDE else _line_by_line
        parts.append(f"{title}\n{table(rows, width)}")
        parts.append("\n".join(_sentences(one, min(width or _WIDEST, _WIDEST)) for one in rows))
        parts += [_details(one, width) for one in rows if one.result.successful_profile] if len(rows) <= FEW else []
    if not parts:
        return "no case has been profiled"
    busy = any(record.noisy for record in contents.profiles)
    mark = ["~ the machine was busy while this was profiled: shares may be off"] if busy and not legend else []
    return "\n\n".join([*parts, *mark, *([LEGEND] if legend else ["--legend explains the figures"])])


def _side_by_side(rows: Sequence[_Shown], width: int | None) -> str:
    """A column for each system; as many tables below each other as the width requires."""
    columns = [[one.name, *_figures(one)] for one in rows]
    widths = [max(map(len, column)) + 2 for column in columns]
    room = (width or sum(widths) + 100) - 2 - max(map(len, FIGURES))
    blocks: list[list[list[str]]] = []
    left = 0
    for column, needed in zip(columns, widths, strict=True):
        if not blocks or needed > left:
            blocks.append([])
            left = room
        blocks[-1].append(column)
        left -= needed
    tables = []
    for block in blocks:
        headings = [Column(""), *(Column(column[0], right=True) for column in block)]
        lines = [[name, *(column[index] for column in block)] for index, name in enumerate(FIGURES, 1)]
        known = [line for line in lines if any(cell != "–" for cell in line[1:])]
        tables.append(render_table(headings, known, indent="  "))
    return "\n\n".join(tables)


def _line_by_line(rows: Sequence[_Shown], width: int | None) -> str:
    order = [name for name in FIGURES if name != "bottleneck"]
    headings = ["system", *order, "bottleneck"]
    columns = [Column(name, right=name in FIGURES[1:10], drop=_DROP.get(name, 0)) for name in headings]
    lines: list[list[str] | None] = []
    for one in rows:
        figures = dict(zip(FIGURES, _figures(one), strict=True))
        lines.append([one.name, *(figures[name] for name in order), figures["bottleneck"]])
    return render_fitted(columns, lines, width, indent="  ")[0]


def _sentences(one: _Shown, width: int) -> str:
    lines = [wrapped(f"{one.label}: {_sentence(one.result)}", "", "  ", width)]
    lines += [wrapped(one.remedy, "  → ", "    ", width)] if one.remedy else []
    return "\n".join(lines)


def profiles_as_markdown(contents: Contents) -> str:
    run = contents.run
    method = run.method
    parts = [
        f"{escape_markdown(run.machine.cpu)}, {run.machine.cores} cores; {method.threads} threads; rnnbench "
        f"{escape_markdown(run.tool.version)} {escape_markdown(run.tool.revision)}, {escape_markdown(run.created)}; "
        f"at most {method.limit_seconds:.0f} s a launch."
    ]
    for title, rows in _groups(contents):
        cells = [[markdown_code(one.name), *map(escape_markdown, _figures(one))] for one in rows]
        parts += [f"## {escape_markdown(title)}", markdown_table(("system", *FIGURES), cells, right=_NUMBERS)]
        parts.append("\n".join(f"- {_markdown_sentence(one)}" for one in rows))
    parts.append("\n".join(["``` text", LEGEND, "```"]))
    return "\n\n".join(parts) + "\n"


def _markdown_sentence(one: _Shown) -> str:
    advice = f" → {escape_markdown(one.remedy)}" if one.remedy else ""
    return f"{markdown_code(one.name)} {one.result.case.phase}: {escape_markdown(_sentence(one.result))}{advice}"


def profiles_as_fields(contents: Contents) -> list[dict[str, Any]]:
    """For JSON: every record with what is derived from it."""
    return [
        {
            "case": one.result.case,
            "profile": one.result.profile,
            "host_share": one.result.successful_profile.host_share if one.result.successful_profile else None,
            "bottleneck": one.result.bottleneck,
            "products": one.rate,
            "advice": one.remedy,
            "noisy": one.result.noisy,
            "retrace": one.result.retrace,
            "new_batch_s": one.result.new_batch.cost_s if one.result.new_batch else None,
            "new_length_s": one.result.new_length.cost_s if one.result.new_length else None,
        }
        for _, rows in _groups(contents)
        for one in rows
    ]


def encode(contents: Contents) -> str:
    return msgspec.json.format(msgspec.json.encode(profiles_as_fields(contents)), indent=2).decode()


def _groups(contents: Contents) -> list[tuple[str, list[_Shown]]]:
    """In the order of the plan."""
    results = find_profile_results(contents.profiles)
    peaks = find_peaks(contents.records)
    groups: dict[tuple[str, str, str], list[ProfileResult]] = {}
    for case in contents.run.cases:
        if case.key in results:
            groups.setdefault((case.workload, case.device, case.precision), []).append(results[case.key])
    shown: list[tuple[str, list[_Shown]]] = []
    for (workload, device, precision), found in groups.items():
        node = next((one.profile.node for one in found if one.profile), "")  # a group is measured on one node
        peak = peaks.get((node, device, precision))
        shape = contents.run.workloads[workload]
        rows = [
            _Shown(one, _name(one, found), find_product_rate(one.profile, shape, peak) if one.profile else None)
            for one in found
        ]
        limit = f"; the machine's limit: {units.rate(peak.flops_per_s, 'FLOP')} in products" if peak else ""
        shown.append((f"{workload} · {device} · {precision}{limit}", rows))
    return shown


def _name(one: ProfileResult, group: Sequence[ProfileResult]) -> str:
    case = one.case
    several = len({other.case.environment for other in group if other.case.system == case.system}) > 1
    return f"{case.system} ({case.environment})" if several else case.system


def _figures(one: _Shown) -> list[str]:
    """In the order of FIGURES."""
    result, profile = one.result, one.result.successful_profile
    figures = ["–"] * 10
    if profile is not None:
        figures = [
            f"{profile.count:,.0f}",
            units.seconds(profile.wall_s),
            units.seconds(profile.host_s),
            units.seconds(profile.busy_s),
            units.share(profile.host_share),
            *_shares(profile),
            _rate(one.rate),
            result.bottleneck.name or "-" if result.bottleneck else "–",
        ]
    elif result.profile is not None:
        figures[-1] = {"none": "no profiler"}.get(result.profile.outcome, result.profile.outcome)
    figures[-1] += "~" if result.noisy else ""
    failed = result.retrace.outcome if result.retrace and result.retrace.outcome != "ok" else "–"
    return [result.case.phase, *figures, *(_reshape(new, failed) for new in (result.new_batch, result.new_length))]


def _shares(profile: Profile) -> list[str]:
    """Of the batch: products, element-wise operators and copies, others."""
    known = (profile.products_s, profile.kinds.get("memory", 0.0))
    others = max(0.0, sum(profile.kinds.values()) - sum(known))
    return [units.share(seconds / profile.wall_s if profile.wall_s else None) for seconds in (*known, others)]


def _rate(rate: ProductRate | None) -> str:
    """`41.2 GFLOP/s, 56 %`."""
    if rate is None:
        return "–"
    limit = "" if rate.of_limit is None else f", {units.share(rate.of_limit)}"
    return f"{units.rate(rate.flops_per_s, 'FLOP')}{limit}"


def _reshape(new: Reshape | None, otherwise: str) -> str:
    """`3.36 s, rebuilt`."""
    return f"{units.seconds(new.cost_s)}, {new.outcome}" if new else otherwise


def _sentence(one: ProfileResult) -> str:
    parts = []
    if one.bottleneck is not None:
        parts.append(str(one.bottleneck))
    elif one.profile is not None:
        parts.append(f"{'no profiler' if one.profile.outcome == 'none' else one.profile.outcome}: {one.profile.reason}")
    for what, new in (("a new batch size", one.new_batch), ("a new length", one.new_length)):
        if new is not None and new.reason:
            parts.append(f"{what} needs a new program ({new.reason})")
    if one.retrace is not None and one.retrace.outcome != "ok":
        parts.append(f"new shapes: {one.retrace.reason}")
    return "; ".join(parts)


def _details(one: _Shown, width: int | None) -> str:
    profile = one.result.successful_profile
    assert profile is not None
    longest = min(90, max(20, (width or _WIDEST) - 32))
    rows = [
        [shortened(each.name, longest), f"{each.count:,.0f}", units.seconds(share * profile.wall_s), units.share(share)]
        for each, share in zip(profile.top, profile.top_shares, strict=True)
    ]
    columns = [
        Column("operator"),
        Column("a batch", right=True),
        Column("time", right=True),
        Column("share", right=True),
    ]
    overhead = f"with the profiler a batch takes {profile.profiled_s / profile.wall_s:.1f} times as long"
    trace = f"\ntrace for ui.perfetto.dev: {profile.trace}" if profile.trace else "\nthis profiler writes no trace"
    return f"{one.label}; {overhead}\n{render_table(columns, rows, indent='  ')}{trace}"
