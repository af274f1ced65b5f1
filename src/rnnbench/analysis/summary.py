"""What the numbers of a group say, in sentences. One that would be wrong for other numbers is not printed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from rnnbench import units
from rnnbench.analysis.gap import Best, BreakEven, Gap
from rnnbench.analysis.row import Row, RowId, is_verified, row_id, short_names
from rnnbench.domain.result import Interval
from rnnbench.units import count_interval, listing, percent_interval, seconds_interval, times_interval

StatementKind = Literal[
    "none",  # no verified row
    "only",  # one verified row, nothing to compare it with
    "fastest",  # seen to be faster than every other verified row
    "level",  # the best row, and those it is not told apart from
    "cost",  # what the best row needs
    "gap",
    "no gap",
    "recovered",
    "not recovered",
    "pays",  # after so many batches
    "limit",
    "wrong",  # rows that computed something else
    "caution",
]


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence, and what it rests on: the rows it speaks of, in its order, and its figure."""

    kind: StatementKind
    text: str
    about: tuple[RowId, ...] = ()
    figure: Interval | None = None


def summarise(
    rows: Sequence[Row], best: Best | None, gaps: Sequence[Gap], break_evens: Sequence[BreakEven]
) -> tuple[Statement, ...]:
    """Of one group, in the order a reader asks: who is fastest, at what cost, and what does flexibility cost."""
    names = short_names(rows)
    parts: list[Iterable[Statement]] = [_first(best, names)]
    if best is not None:
        parts += [_cost(best, names), _limit(rows, best, names)]
    for gap in gaps:
        parts += [_gap(gap, names), _recovered(gap, names)]
    parts += [_pays(best, gaps, break_evens, names), _wrong(rows, names), _cautions(rows)]
    return tuple(statement for part in parts for statement in part)


Names = dict[RowId, str]


def _first(best: Best | None, names: Names) -> Iterator[Statement]:
    if best is None:
        yield Statement(kind="none", text="No row is verified: nothing can be said about who is fast.")
        return
    name, wall = names[best.row], seconds_interval(best.wall_s)
    if not best.others:
        yield Statement(
            kind="only",
            text=f"{name} is the only verified row: {wall} a batch.",
            about=(best.row,),
            figure=best.wall_s,
        )
    elif not best.level:
        assert best.next is not None
        assert best.next_ratio is not None
        yield Statement(
            kind="fastest",
            text=f"{name} is the fastest of {best.others + 1} verified rows: {wall} a batch. "
            f"The next, {names[best.next]}, takes {times_interval(best.next_ratio)} as long.",
            about=(best.row, best.next),
            figure=best.next_ratio,
        )
    else:
        rest = best.others - len(best.level)
        others = f" {rest} more {'row is' if rest == 1 else 'rows are'} slower." if rest else ""
        yield Statement(
            kind="level",
            text=f"{name} has the lowest time, {wall} a batch, but no difference is seen between it and "
            f"{listing([names[one] for one in best.level])}.{others}",
            about=(best.row, *best.level),
            figure=best.wall_s,
        )


def _cost(best: Best, names: Names) -> Iterator[Statement]:
    name = names[best.row]
    needs = []
    if best.memory_bytes is not None:
        needs.append(f"{units.size(best.memory_bytes)} of memory")
    if best.compile_s is not None:
        needs.append(f"{units.seconds(best.compile_s)} of compiling and warming up")
    if not needs:
        return
    lean = ""
    if best.least_memory is not None:
        lean = f" Least memory has {names[best.least_memory]}: {units.size(best.least_memory_bytes)}."
    about = (best.row,) if best.least_memory is None else (best.row, best.least_memory)
    yield Statement(kind="cost", text=f"{name} needs {' and '.join(needs)}.{lean}", about=about)


def _limit(rows: Sequence[Row], best: Best, names: Names) -> Iterator[Statement]:
    row = next(row for row in rows if row_id(row) == best.row)
    if row.limit_share is None or row.limit_share_low is None or row.limit_share_high is None:
        return
    share = Interval(row.limit_share_low, row.limit_share, row.limit_share_high)
    limit = f"the machine's limit, {units.seconds(row.limit_s)} a batch"
    if share.low > 1:
        text = f"{names[best.row]} is faster than {limit}: its rates were measured too low here."
    else:
        text = f"{names[best.row]} reaches {percent_interval(share)} of {limit}."
    yield Statement(kind="limit", text=text, about=(best.row,), figure=share)


def _gap(gap: Gap, names: Names) -> Iterator[Statement]:
    eager, best = names[gap.eager], names[gap.best]
    if gap.seen:
        text = f"The price of flexibility: {eager} takes {times_interval(gap.times)} as long as {best}."
        yield Statement(kind="gap", text=text, about=(gap.eager, gap.best), figure=gap.times)
    else:
        beside = f"between {eager} and {best}" if gap.eager != gap.best else f"beside {eager}, itself the best row"
        text = f"No price of flexibility is seen {beside}."
        yield Statement(kind="no gap", text=text, about=(gap.eager, gap.best), figure=gap.times)


def _recovered(gap: Gap, names: Names) -> Iterator[Statement]:
    """Only of a gap that was seen."""
    eager = names[gap.eager]
    for one in gap.recovered:
        if one.share is None:
            continue
        name = names[one.row]
        if one.verdict == "faster":
            text = f"{name} wins back {percent_interval(one.share)} of that, the program unchanged."
            yield Statement(kind="recovered", text=text, about=(one.row, gap.eager), figure=one.share)
        else:
            found = "wins nothing" if one.verdict == "slower" else "is not seen to win anything"
            text = f"{name} {found} back: it takes {times_interval(one.against_eager)} as long as {eager}."
            yield Statement(kind="not recovered", text=text, about=(one.row, gap.eager), figure=one.against_eager)


def _pays(
    best: Best | None, gaps: Sequence[Gap], break_evens: Sequence[BreakEven], names: Names
) -> Iterator[Statement]:
    """For the best row and for what wins something back: the table has the others."""
    spoken_of = {one.row for gap in gaps for one in gap.recovered} | ({best.row} if best else set())
    for one in break_evens:
        if one.row in spoken_of and one.batches is not None and one.cost_s > 0:
            text = (
                f"{names[one.row]} has paid for the {units.seconds(one.cost_s)} of its start after "
                f"{count_interval(one.batches)} batches, against {names[one.eager]}."
            )
            yield Statement(kind="pays", text=text, about=(one.row, one.eager), figure=one.batches)


def _wrong(rows: Sequence[Row], names: Names) -> Iterator[Statement]:
    wrong = [row_id(row) for row in rows if row.status == "wrong"]
    if wrong:
        verbs = ("computes", "counts") if len(wrong) == 1 else ("compute", "count")
        text = f"{listing([names[one] for one in wrong])} {verbs[0]} something else and {verbs[1]} for nothing here."
        yield Statement(kind="wrong", text=text, about=tuple(wrong))


def _cautions(rows: Sequence[Row]) -> Iterator[Statement]:
    verified = [row for row in rows if is_verified(row)]
    once = [row_id(row) for row in verified if row.launches == 1]
    if once:
        text = (
            f"{len(once)} of {len(verified)} verified rows had one launch: "
            "how one process differs from the next is not known of them, and allowed for."
        )
        yield Statement(kind="caution", text=text, about=tuple(once))
    noisy = [row_id(row) for row in verified if row.noisy]
    if noisy:
        text = f"The machine was busy while {len(noisy)} of {len(verified)} verified rows were measured."
        yield Statement(kind="caution", text=text, about=tuple(noisy))
