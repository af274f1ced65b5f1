"""Profiles as text, Markdown and JSON: a table per workload, device and precision, and a sentence per row."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rnnbench import units
from rnnbench.analysis.profile_results import ProfileResult, find_profile_results
from rnnbench.domain.profile import Reshape
from rnnbench.store import Contents
from rnnbench.text import Column, escape_markdown, markdown_code, markdown_table, render_table

HEADINGS = (
    "system", "phase", "operators", "batch", "host", "busy", "no operator", "bottleneck", "new batch size",
    "new length",
)  # fmt: skip
_NUMBERS = (2, 3, 4, 5, 6)

LEGEND = """\
operators   in one batch, by the framework's profiler: those that call no others; on a GPU its kernels and copies
batch       time of one batch in the same process without the profiler; not a measurement, see `rnnbench run`
host        how long the host takes to issue the work of a batch; on a CPU nearly all of it
busy        how long at least one of these operators runs
no operator the share of a batch in which none runs: interpreter, dispatch, bookkeeping; on a GPU the device waits
bottleneck  what takes at least half of a batch; - if nothing does
new …       the first call with one more sequence or step, less a warm call. kept: nothing was built. rebuilt: the
            framework reported that it built again. uncounted: it ran, but the framework does not count builds. anew:
            the program refused the shape or computed something else, so a new one was built"""


FEW = 2  # at most so many rows of a table are also shown operator by operator


def show_profiles(contents: Contents) -> str:
    """The tables, a sentence for each row, and the most expensive operators if there are few rows."""
    groups = _groups(contents)
    columns = [Column(heading, right=number in _NUMBERS) for number, heading in enumerate(HEADINGS)]
    parts = []
    for title, rows in groups:
        parts.append(title + "\n" + render_table(columns, [_cells(one, rows, str) for one in rows], indent="  "))
        parts.append("\n".join(f"{one.case.system} {one.case.phase}: {_sentence(one)}" for one in rows))
        parts += [_details(one) for one in rows if one.successful_profile] if len(rows) <= FEW else []
    return "\n\n".join([*parts, LEGEND]) if parts else "no case has been profiled"


def profiles_as_markdown(contents: Contents) -> str:
    run = contents.run
    method = run.method
    parts = [
        f"{escape_markdown(run.machine.cpu)}, {run.machine.cores} cores; {method.threads} threads; rnnbench "
        f"{escape_markdown(run.tool.version)} {escape_markdown(run.tool.revision)}, {escape_markdown(run.created)}; "
        f"at most {method.limit_seconds:.0f} s a launch."
    ]
    for title, rows in _groups(contents):
        parts += [
            f"## {escape_markdown(title)}",
            markdown_table(HEADINGS, [_cells(one, rows, markdown_code) for one in rows], right=_NUMBERS),
        ]
        parts.append(
            "\n".join(
                f"- {markdown_code(one.case.system)} {one.case.phase}: {escape_markdown(_sentence(one))}"
                for one in rows
            )
        )
    parts.append("\n".join(["``` text", LEGEND, "```"]))
    return "\n\n".join(parts) + "\n"


def profiles_as_fields(contents: Contents) -> list[dict[str, Any]]:
    """For JSON: every record with what is derived from it."""
    return [
        {
            "case": one.case,
            "profile": one.profile,
            "host_share": one.successful_profile.host_share if one.successful_profile else None,
            "bottleneck": one.bottleneck,
            "retrace": one.retrace,
            "new_batch_s": one.new_batch.cost_s if one.new_batch else None,
            "new_length_s": one.new_length.cost_s if one.new_length else None,
        }
        for one in find_profile_results(contents.profiles).values()
    ]


def _groups(contents: Contents) -> list[tuple[str, list[ProfileResult]]]:
    """In the order of the plan."""
    results = find_profile_results(contents.profiles)
    groups: dict[tuple[str, str, str], list[ProfileResult]] = {}
    for case in contents.run.cases:
        if case.key in results:
            groups.setdefault((case.workload, case.device, case.precision), []).append(results[case.key])
    return [(" · ".join(key), rows) for key, rows in groups.items()]


def _cells(one: ProfileResult, group: list[ProfileResult], name: Callable[[str], str]) -> list[str]:
    case = one.case
    several = len({other.case.environment for other in group if other.case.system == case.system}) > 1
    system = f"{case.system} ({case.environment})" if several else case.system
    profile = one.successful_profile
    counts = ["–"] * 6
    if profile is not None:
        counts = [
            f"{profile.count:,.0f}",
            units.seconds(profile.wall_s),
            units.seconds(profile.host_s),
            units.seconds(profile.busy_s),
            units.share(profile.host_share),
            one.bottleneck.name or "-" if one.bottleneck else "–",
        ]
    elif one.profile is not None:
        counts[-1] = {"none": "no profiler"}.get(one.profile.outcome, one.profile.outcome)
    failed = one.retrace.outcome if one.retrace and one.retrace.outcome != "ok" else "–"
    return [name(system), case.phase, *counts, *(_reshape(new, failed) for new in (one.new_batch, one.new_length))]


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


def _details(one: ProfileResult) -> str:
    profile = one.successful_profile
    assert profile is not None
    rows: Sequence[Sequence[str]] = [
        [each.name[:90], f"{each.count:,.0f}", units.seconds(each.seconds), units.share(each.seconds / profile.wall_s)]
        for each in profile.top
    ]
    columns = [
        Column("operator"),
        Column("a batch", right=True),
        Column("time", right=True),
        Column("share", right=True),
    ]
    overhead = f"with the profiler a batch takes {profile.profiled_s / profile.wall_s:.1f} times as long"
    trace = f"\ntrace for ui.perfetto.dev: {profile.trace}" if profile.trace else "\nthis profiler writes no trace"
    return f"{one.case.system} {one.case.phase}; {overhead}\n{render_table(columns, rows, indent='  ')}{trace}"


def encode(contents: Contents) -> str:
    return msgspec.json.format(msgspec.json.encode(profiles_as_fields(contents)), indent=2).decode()
