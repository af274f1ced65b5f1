"""What the numbers of a group say, in sentences. A sentence is printed only if the numbers support it."""

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
    "level",  # the best row, and those from which no difference is seen
    "cost",  # what the best row needs
    "gap",
    "no gap",
    "recovered",
    "not recovered",
    "pays",  # when a compile time is made up for
    "limit",
    "wrong",  # rows that computed something else
    "above",  # rows faster than the machine can be
    "caution",
]


Names = dict[RowId, str]


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence with the rows it is about, in its order, and its figure."""

    kind: StatementKind
    text: str
    about: tuple[RowId, ...] = ()
    figure: Interval | None = None


def summarise(
    rows: Sequence[Row], best: Best | None, gaps: Sequence[Gap], break_evens: Sequence[BreakEven]
) -> tuple[Statement, ...]:
    """Of one group, in the order of a reader's questions: what is fastest, what it needs, what flexibility costs."""
    names = short_names(rows)
    parts: list[Iterable[Statement]] = [_fastest(best, names)]
    if best is not None:
        parts += [_cost(best, names), _limit(rows, best, names)]
    for gap in gaps:
        parts += [_gap(gap, names), _recovered(gap, names)]
    parts += [_pays(best, gaps, break_evens, names), _wrong(rows, names), _above(rows, names), _cautions(rows, names)]
    return tuple(statement for part in parts for statement in part)


def _fastest(best: Best | None, names: Names) -> Iterator[Statement]:
    if best is None:
        yield Statement(kind="none", text="No row is verified, so nothing can be said about speed.")
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
            f"{listing([names[row] for row in best.level])}.{others}",
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
    least = ""
    if best.least_memory is not None:
        least = f" {names[best.least_memory]} needs the least memory: {units.size(best.least_memory_bytes)}."
    about = (best.row,) if best.least_memory is None else (best.row, best.least_memory)
    yield Statement(kind="cost", text=f"{name} needs {' and '.join(needs)}.{least}", about=about)


def _limit(rows: Sequence[Row], best: Best, names: Names) -> Iterator[Statement]:
    row = next(row for row in rows if row_id(row) == best.row)
    if row.limit_share is None or row.limit_share_low is None or row.limit_share_high is None:
        return
    share = Interval(row.limit_share_low, row.limit_share, row.limit_share_high)
    limit = f"the machine's limit, {units.seconds(row.limit_s)} a batch"
    if share.low > 1:
        text = f"{names[best.row]} is faster than {limit}: the machine's rates were measured too low."
    else:
        text = f"{names[best.row]} reaches {percent_interval(share)} of {limit}."
    yield Statement(kind="limit", text=text, about=(best.row,), figure=share)


def _gap(gap: Gap, names: Names) -> Iterator[Statement]:
    eager, best = names[gap.eager], names[gap.best]
    if gap.seen:
        text = f"The price of flexibility: {eager} takes {times_interval(gap.times)} as long as {best}."
        yield Statement(kind="gap", text=text, about=(gap.eager, gap.best), figure=gap.times)
    else:
        where = f" between {eager} and {best}" if gap.eager != gap.best else f": {eager} is itself the best row"
        text = f"No price of flexibility is seen{where}."
        yield Statement(kind="no gap", text=text, about=(gap.eager, gap.best), figure=gap.times)


def _recovered(gap: Gap, names: Names) -> Iterator[Statement]:
    """Only of a gap that was seen."""
    eager = names[gap.eager]
    for execution in gap.recovered:
        if execution.share is None:
            continue
        name, about = names[execution.row], (execution.row, gap.eager)
        if execution.verdict == "faster":
            text = f"{name} wins back {percent_interval(execution.share)} of that with the same program."
            yield Statement(kind="recovered", text=text, about=about, figure=execution.share)
        else:
            result = "wins nothing" if execution.verdict == "slower" else "is not seen to win anything"
            text = f"{name} {result} back: it takes {times_interval(execution.against_eager)} as long as {eager}."
            yield Statement(kind="not recovered", text=text, about=about, figure=execution.against_eager)


def _pays(
    best: Best | None, gaps: Sequence[Gap], break_evens: Sequence[BreakEven], names: Names
) -> Iterator[Statement]:
    """For the best row and the executions of the fine-grained program; the table has the others."""
    mentioned = {execution.row for gap in gaps for execution in gap.recovered} | ({best.row} if best else set())
    for each in break_evens:
        if each.row in mentioned and each.batches is not None and each.cost_s > 0:
            text = (
                f"{names[each.row]} compiles {units.seconds(each.cost_s)} longer than {names[each.eager]} and has made "
                f"up for it after {count_interval(each.batches)} batches."
            )
            yield Statement(kind="pays", text=text, about=(each.row, each.eager), figure=each.batches)


def _wrong(rows: Sequence[Row], names: Names) -> Iterator[Statement]:
    wrong = [row_id(row) for row in rows if row.status == "wrong"]
    if wrong:
        verbs = ("computes", "is") if len(wrong) == 1 else ("compute", "are")
        text = f"{listing([names[row] for row in wrong])} {verbs[0]} something else and {verbs[1]} not compared."
        yield Statement(kind="wrong", text=text, about=tuple(wrong))


def _above(rows: Sequence[Row], names: Names) -> Iterator[Statement]:
    above = [row_id(row) for row in rows if row.above_limit and row.status != "wrong"]
    if above:
        verb = "is" if len(above) == 1 else "are"
        text = (
            f"{listing([names[row] for row in above])} {verb} faster than this machine can be and {verb} not compared."
        )
        yield Statement(kind="above", text=text, about=tuple(above))


def _cautions(rows: Sequence[Row], names: Names) -> Iterator[Statement]:
    verified = [row for row in rows if is_verified(row)]
    once = [row_id(row) for row in verified if row.launches == 1]
    if once:
        text = (
            f"{len(once)} of {len(verified)} verified rows had one launch: how processes differ is not known for them, "
            "and their intervals allow for it."
        )
        yield Statement(kind="caution", text=text, about=tuple(once))
    unsteady = [row_id(row) for row in verified if row.steady is False]
    if unsteady:
        verb = "was" if len(unsteady) == 1 else "were"
        text = f"{listing([names[row] for row in unsteady])} {verb} not steady while sampled: do not trust the time."
        yield Statement(kind="caution", text=text, about=tuple(unsteady))
    noisy = [row_id(row) for row in verified if row.noisy]
    if noisy:
        text = f"The machine was busy while {len(noisy)} of {len(verified)} verified rows were measured."
        yield Statement(kind="caution", text=text, about=tuple(noisy))
