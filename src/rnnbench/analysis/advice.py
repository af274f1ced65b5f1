"""What to do with the numbers of a group: which row to use, and how a loop of one's own is made faster.

Like the summary it says only what the intervals support. It is short: one sentence for the choice, one for each
framework with a fine-grained loop, then what is left to win and what memory costs.
"""

from collections.abc import Collection, Iterator, Sequence

import msgspec

from rnnbench import units
from rnnbench.analysis.answer import loop_places
from rnnbench.analysis.gap import Best, BreakEven, Gap
from rnnbench.analysis.row import MeasuredRow, RowId, is_verified, over, row_id, short_names
from rnnbench.stats.intervals import difference_verdict

_NAMED = 3  # rows that are listed by name
_MUCH_MEMORY = 1.25  # times: less is not worth a sentence


class Advice(msgspec.Struct, frozen=True):
    """One sentence, and the rows it is about."""

    text: str
    about: tuple[RowId, ...] = ()


def advise(
    rows: Sequence[MeasuredRow], best: Best | None, gaps: Sequence[Gap], break_evens: Sequence[BreakEven]
) -> tuple[Advice, ...]:
    """Of one group, the most important first."""
    if best is None:
        return (Advice("No row is verified: see why with `rnnbench show`, and do not use any time of this table."),)
    verified = {row_id(one.row): one for one in rows if is_verified(one.row)}
    names = short_names(one.row for one in rows)
    return (
        _use(best, verified, names),
        *_loops(gaps, verified, break_evens),
        *_left_to_win(verified[best.row], names),
        *_memory(best, names),
    )


def _use(best: Best, verified: dict[RowId, MeasuredRow], names: dict[RowId, str]) -> Advice:
    wall = units.seconds_interval(best.wall_s)
    if not best.others:
        return Advice(f"Only {names[best.row]} is verified, {wall} a batch: measure others to compare.", (best.row,))
    chosen = (best.row, *best.level)
    if best.level:
        named = chosen[: _NAMED if len(chosen) > _NAMED + 1 else len(chosen)]
        words = [*(names[row] for row in named), *([f"{len(chosen) - len(named)} more"] if named != chosen else [])]
        text = f"Use {', '.join(words[:-1])} or {words[-1]}, no difference seen: {wall} a batch."
    else:
        text = f"Use {names[best.row]}: {wall} a batch, the fastest of {best.others + 1} verified rows."
    quickest = min(chosen, key=lambda row: verified[row].row.compile_s or 0.0)
    compile_s, least = best.compile_s or 0.0, verified[quickest].row.compile_s or 0.0
    if quickest != best.row and compile_s > 2 * least and compile_s > 1:
        text += f" For few batches {names[quickest]}, which is warm {units.seconds(compile_s - least)} earlier."
    return Advice(text, chosen)


def _loops(gaps: Sequence[Gap], verified: dict[RowId, MeasuredRow], break_evens: Sequence[BreakEven]) -> list[Advice]:
    """One for each loop. First the framework in which a cell of one's own can be fastest."""
    found = [_loop(gap, verified, break_evens) for gap in gaps]
    return sorted(found, key=lambda advice: min(verified[row].wall.estimate for row in advice.about))


def _loop(gap: Gap, verified: dict[RowId, MeasuredRow], break_evens: Sequence[BreakEven]) -> Advice:
    """What the loop costs, and two ways out of it: to run it otherwise, or to rewrite it with larger operators.

    Each way is the fastest of its kind in the same environment, and is named only if it is seen to be faster.
    """
    eager = verified[gap.eager]
    place = loop_places(one.row for one in verified.values())[gap.eager]
    if not gap.seen:
        return Advice(f"{place}: keep your loop, it is not seen to cost anything.", (gap.eager,))
    unchanged = _fastest_of(eager, ("fine",), verified)
    rewritten = _fastest_of(eager, ("packed", "cell", "layer", "stack"), verified)
    if unchanged and rewritten and difference_verdict(over(rewritten, unchanged)) != "faster":
        rewritten = None  # not worth the work
    ways = [
        *([f"run it with {_option(unchanged, break_evens)}"] if unchanged else []),
        *([f"rewrite as {_option(rewritten, break_evens)}"] if rewritten else []),
    ]
    cost = units.marked(units.times(gap.times.estimate), gap.times.uncertain)
    about = (gap.eager, *(row_id(one.row) for one in (unchanged, rewritten) if one))
    return Advice(
        f"{place}: your loop costs {cost}; {' or '.join(ways) or 'nothing here is seen to be faster'}.", about
    )


def _fastest_of(
    eager: MeasuredRow, granularities: Collection[str], verified: dict[RowId, MeasuredRow]
) -> MeasuredRow | None:
    """Of the same framework and environment; None where even the fastest is not seen to be faster than the loop."""
    others = [
        one
        for one in verified.values()
        if one is not eager
        and one.row.granularity in granularities
        and (one.row.framework, one.row.environment) == (eager.row.framework, eager.row.environment)
    ]
    found = min(others, key=lambda one: one.wall.estimate, default=None)
    return found if found and difference_verdict(over(found, eager)) == "faster" else None


_MANY_BATCHES = 100  # fewer are over in a minute or two


def _option(found: MeasuredRow, break_evens: Sequence[BreakEven]) -> str:
    """`fine/script (1.74×)`: what it costs, and after how many batches where that matters."""
    name = found.row.system.removeprefix(f"{found.row.framework}/")
    cost = units.marked(units.times(found.row.ratio), found.row.ratio_uncertain)
    for each in break_evens:
        if each.row == row_id(found.row) and each.batches is not None and each.batches.estimate > _MANY_BATCHES:
            cost += f" after {round(each.batches.estimate):,} batches"
    return f"{name} ({cost})"


def _left_to_win(best: MeasuredRow, names: dict[RowId, str]) -> Iterator[Advice]:
    share = best.row.limit_share
    if share is not None and 0 < share < 1:
        yield Advice(
            f"{names[row_id(best.row)]} reaches {units.share(share)} of the machine's limit: nothing here can be more "
            f"than {units.times(1 / share)} as fast.",
            (row_id(best.row),),
        )


def _memory(best: Best, names: dict[RowId, str]) -> Iterator[Advice]:
    if best.least_memory is None or not best.memory_bytes or not best.least_memory_bytes:
        return
    if best.memory_bytes > _MUCH_MEMORY * best.least_memory_bytes:
        yield Advice(
            f"If memory is scarce, {names[best.least_memory]}: {units.size(best.least_memory_bytes)} instead of "
            f"{units.size(best.memory_bytes)}.",
            (best.least_memory, best.row),
        )
