"""The answer of a run in a few lines: per table what is fastest and what the others cost, and three next commands."""

import shlex
from collections.abc import Sequence

from rnnbench import units
from rnnbench.analysis.row import Group, Row, RowId, is_verified, row_id, short_names
from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.result import Interval
from rnnbench.stats.intervals import difference_verdict
from rnnbench.text import wrapped

_NAMED = 4  # rows that are listed by name; of more the number is enough
_WIDEST = 110


def show_answer(rows: Sequence[Row], width: int | None = None) -> str:
    """Two or three lines for each table."""
    groups: dict[Group, list[Row]] = {}
    for row in rows:
        groups.setdefault(Group(0, *row.group), []).append(row)
    parts = []
    for group, members in groups.items():
        lines = (wrapped(line, "  ", "    ", min(width or _WIDEST, _WIDEST)) for line in _answer(members))
        parts.append("\n".join([str(group), *lines]))
    return "\n".join(parts)


def succeeded(rows: Sequence[Row]) -> bool:
    """Whether any row has a time that may be believed, or could be if it had been verified."""
    return any(row.wall_s is not None and row.status in ("verified", "unverified") for row in rows)


def next_commands(rows: Sequence[Row], run: str) -> str:
    """What to do with a run of this name: understand it, show it to others, look into the row that costs most."""
    commands = [
        ("what to do, in ten lines", f"rnnbench explain {shlex.quote(run)}"),
        ("a page with charts", f"rnnbench report {shlex.quote(run)} --out report"),
    ]
    # A user's own cell has no name that a command could take: its command takes --profile.
    if row := _worth_profiling([row for row in rows if row.workload.partition("[")[0] in CATALOG]):
        words = [row.system, "-w", row.workload, "--phase", row.phase, "--device", row.device]
        commands.append(("why it is slow", f"rnnbench profile {shlex.join(words)}"))
    longest = max(len(what) for what, _ in commands)
    return "\n".join(["next:", *(f"  {what:{longest}}  {command}" for what, command in commands)])


def _answer(rows: Sequence[Row]) -> list[str]:
    verified = sorted((row for row in rows if is_verified(row)), key=lambda row: row.wall_s or 0.0)
    if not verified:
        return ["no row is verified, so nothing can be said about speed"]
    names = short_names(rows)
    costs = [*_loops(verified), *_layers(verified, names)]
    return [_fastest(verified, names), *(["; ".join(costs)] if costs else [])]


def _fastest(verified: Sequence[Row], names: dict[RowId, str]) -> str:
    best, *others = sorted(verified, key=lambda row: not row.best)
    wall = units.marked(units.seconds(best.wall_s), best.uncertain)
    if not others:
        return f"only {names[row_id(best)]} is verified: {wall} a batch"
    level = [names[row_id(row)] for row in others if not _is_slower(row)]
    more = f" and {len(level) - _NAMED} more" if len(level) > _NAMED else ""
    alike = f"; not distinguishable from it: {', '.join(level[:_NAMED])}{more}" if level else ""
    return f"fastest: {names[row_id(best)]}, {wall} a batch{alike}"


def _is_slower(row: Row) -> bool:
    """Whether it is seen to be slower than the best row of its table."""
    if row.ratio is None or row.ratio_low is None or row.ratio_high is None:
        return False
    return difference_verdict(Interval(row.ratio_low, row.ratio, row.ratio_high)) == "slower"


def _loops(verified: Sequence[Row]) -> list[str]:
    """What the fine-grained loop costs in each framework that has one."""
    loops = [row for row in verified if (row.granularity, row.execution) == ("fine", "eager")]
    places = {
        row_id(row): row.environment if sum(other.system == row.system for other in loops) > 1 else row.framework
        for row in loops
    }
    seen = [f"{_cost(row)} in {places[row_id(row)]}" for row in loops if _is_slower(row)]
    unseen = [places[row_id(row)] for row in loops if not _is_slower(row)]
    lines = [f"your fine-grained loop costs {', '.join(seen)}"] if seen else []
    return lines + ([f"no cost of a fine-grained loop is seen in {units.listing(unseen)}"] if unseen else [])


def _layers(verified: Sequence[Row], names: dict[RowId, str]) -> list[str]:
    """What the frameworks' own layers cost, called as most people call them: eagerly, one operator for a layer."""
    return [
        f"{_known_as(row, names[row_id(row)])} {_cost(row)}"
        for row in verified
        if row.execution == "eager" and row.granularity in ("layer", "stack") and not row.best
    ]


def _cost(row: Row) -> str:
    return units.marked(units.times(row.ratio), row.ratio_uncertain)


def _known_as(row: Row, name: str) -> str:
    """`torch.nn.LSTM` where the system's description begins with such a name and a colon."""
    known, colon, _ = row.description.partition(":")
    colon = colon if "cell=" not in row.workload else ""  # then it is another layer than the one described
    return known if colon and "." in known and " " not in known and "@" not in name else name


def _worth_profiling(rows: Sequence[Row]) -> Row | None:
    """The loop that costs most, or else the slowest row with a time."""
    timed = [row for row in rows if row.wall_s is not None]
    loops = [row for row in timed if is_verified(row) and (row.granularity, row.execution) == ("fine", "eager")]
    return max(loops or timed, key=lambda row: row.ratio or 0.0, default=None)
