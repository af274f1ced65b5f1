"""The answer of a run in a few lines: per table what is fastest and what the others cost, and three next commands."""

import shlex
from collections.abc import Sequence

from rnnbench import units
from rnnbench.analysis.gap import Best, Gap, find_best, find_gaps
from rnnbench.analysis.row import Group, MeasuredRow, Row, RowId, is_verified, row_id, short_names
from rnnbench.text import wrapped

_NAMED = 4  # rows that are listed by name; of more the number is enough
_WIDEST = 110


def show_answer(rows: Sequence[MeasuredRow], width: int | None = None) -> str:
    """Two or three lines for each table."""
    parts = []
    for group, members in _groups(rows).items():
        lines = (wrapped(line, "  ", "    ", min(width or _WIDEST, _WIDEST)) for line in _answer(members))
        parts.append("\n".join([str(group), *lines]))
    return "\n".join(parts)


def succeeded(rows: Sequence[MeasuredRow]) -> bool:
    """Whether any row has a time that may be believed, or could be if it had been verified."""
    return any(one.row.wall_s is not None and one.row.status in ("verified", "unverified") for one in rows)


def next_commands(rows: Sequence[MeasuredRow], run: str) -> str:
    """What to do with a run of this name: understand it, show it to others, look into the row that costs most."""
    commands = [
        ("what to do, in ten lines", f"rnnbench explain {shlex.quote(run)}"),
        ("a page with charts", f"rnnbench report {shlex.quote(run)} --out report"),
    ]
    if row := _worth_profiling(rows):
        words = [row.system, "-w", row.workload, "--phase", row.phase, "--device", row.device]
        commands.append(("why it is slow", f"rnnbench profile {shlex.join(words)}"))
    longest = max(len(what) for what, _ in commands)
    return "\n".join(["next:", *(f"  {what:{longest}}  {command}" for what, command in commands)])


def _groups(rows: Sequence[MeasuredRow]) -> dict[Group, list[MeasuredRow]]:
    groups: dict[Group, list[MeasuredRow]] = {}
    for measured in rows:
        groups.setdefault(Group(0, *measured.row.group), []).append(measured)
    return groups


def _answer(rows: Sequence[MeasuredRow]) -> list[str]:
    best = find_best(rows)
    if best is None:
        return ["no row is verified, so nothing can be said about speed"]
    names = short_names(one.row for one in rows)
    costs = [*_loops(find_gaps(rows)), *_layers(rows, best)]
    return [_fastest(best, names), *(["; ".join(costs)] if costs else [])]


def _fastest(best: Best, names: dict[RowId, str]) -> str:
    wall = units.marked(units.seconds(best.wall_s.estimate), best.wall_s.uncertain)
    if not best.others:
        return f"only {names[best.row]} is verified: {wall} a batch"
    level = [names[row] for row in best.level]
    more = f" and {len(level) - _NAMED} more" if len(level) > _NAMED else ""
    others = f"; not distinguishable from it: {', '.join(level[:_NAMED])}{more}" if level else ""
    return f"fastest: {names[best.row]}, {wall} a batch{others}"


def _loops(gaps: Sequence[Gap]) -> list[str]:
    """What the fine-grained loop costs in each framework that has one."""
    seen = [f"{_cost(gap)} in {_place(gap, gaps)}" for gap in gaps if gap.seen]
    unseen = [_place(gap, gaps) for gap in gaps if not gap.seen]
    lines = [f"your fine-grained loop costs {', '.join(seen)}"] if seen else []
    return lines + ([f"no cost of a fine-grained loop is seen in {units.listing(unseen)}"] if unseen else [])


def _place(gap: Gap, gaps: Sequence[Gap]) -> str:
    framework = gap.eager.system.partition("/")[0]
    several = sum(other.eager.system == gap.eager.system for other in gaps) > 1
    return gap.eager.environment if several else framework


def _cost(gap: Gap) -> str:
    return units.marked(units.times(gap.times.estimate), gap.times.uncertain)


def _layers(rows: Sequence[MeasuredRow], best: Best) -> list[str]:
    """What the frameworks' own layers cost, called as most people call them: eagerly, one operator for a layer."""
    found = [
        one.row
        for one in rows
        if is_verified(one.row)
        and one.row.execution == "eager"
        and one.row.granularity in ("layer", "stack")
        and row_id(one.row) != best.row
    ]
    names = short_names(found)
    return [
        f"{_known_as(row, names[row_id(row)])} {units.marked(units.times(row.ratio), row.ratio_uncertain)}"
        for row in sorted(found, key=lambda row: row.ratio or 0.0)
    ]


def _known_as(row: Row, name: str) -> str:
    """`torch.nn.LSTM` where the system's description begins with such a name and a colon."""
    known, colon, _ = row.description.partition(":")
    return known if colon and "." in known and " " not in known and "@" not in name else name


def _worth_profiling(rows: Sequence[MeasuredRow]) -> Row | None:
    """The loop that costs most, or else the slowest row with a time."""
    timed = [one.row for one in rows if one.row.wall_s is not None]
    loops = [row for row in timed if is_verified(row) and (row.granularity, row.execution) == ("fine", "eager")]
    return max(loops or timed, key=lambda row: row.ratio or 0.0, default=None)
