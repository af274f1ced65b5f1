"""The answer of a run in a few lines: per table what is fastest and what the others cost, and three next commands."""

import shlex
from collections.abc import Sequence

from rnnbench import units
from rnnbench.analysis.answer import Answer, Cost, find_answer
from rnnbench.analysis.row import Group, Row, is_loop, is_verified
from rnnbench.domain.catalog import CATALOG
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
    answer = find_answer(rows)
    if answer is None:
        return ["no row is verified, so nothing can be said about speed"]
    layers = [f"{layer.name} {_cost(layer)}" for layer in answer.layers]
    costs = [*_loops(answer), *layers]
    return [_fastest(answer), *(["; ".join(costs)] if costs else [])]


def _fastest(answer: Answer) -> str:
    best = answer.best
    wall = units.marked(units.seconds(best.wall_s), best.uncertain)
    if not answer.others:
        return f"only {answer.name(best)} is verified: {wall} a batch"
    level = [answer.name(row) for row in answer.level]
    more = f" and {len(level) - _NAMED} more" if len(level) > _NAMED else ""
    alike = f"; not distinguishable from it: {', '.join(level[:_NAMED])}{more}" if level else ""
    return f"fastest: {answer.name(best)}, {wall} a batch{alike}"


def _loops(answer: Answer) -> list[str]:
    """What the fine-grained loop costs in each framework that has one."""
    seen = [f"{_cost(loop)} in {loop.name}" for loop in answer.loops if loop.seen]
    unseen = [loop.name for loop in answer.loops if not loop.seen]
    lines = [f"your fine-grained loop costs {', '.join(seen)}"] if seen else []
    return lines + ([f"no cost of a fine-grained loop is seen in {units.listing(unseen)}"] if unseen else [])


def _cost(cost: Cost) -> str:
    return units.marked(units.times(cost.row.ratio), cost.row.ratio_uncertain)


def _worth_profiling(rows: Sequence[Row]) -> Row | None:
    """The loop that costs most, or else the slowest row with a time."""
    timed = [row for row in rows if row.wall_s is not None]
    loops = [row for row in timed if is_verified(row) and is_loop(row)]
    return max(loops or timed, key=lambda row: row.ratio or 0.0, default=None)
