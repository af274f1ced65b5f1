"""What the page opens on: for each group a card with its answer, a few sentences and bars; and a matrix of all groups.

The page's template lays it out, and its script only chooses which group is shown.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rnnbench import units
from rnnbench.analysis.answer import Answer, find_answer
from rnnbench.analysis.row import Row, is_loop, row_id
from rnnbench.report.document import Document, Panel, find_node, machine_name
from rnnbench.report.explanation import find_cautions

_SENTENCES = 4  # beside the card, which is one itself
_NAMED = 4  # rows level with the best that are listed by name
_BARS = 16
_LONGEST = 10  # times the best row's time: a longer bar would leave nothing of the others
_PRICES = 3  # loops that are listed one by one


class Bar(NamedTuple):
    """The time of one row. Lengths are percentages of the longest bar with its interval."""

    row: Row
    name: str
    note: str  # what this row is to a reader
    length: float
    low: float
    high: float
    cut: bool  # longer than it is drawn


class Card(NamedTuple):
    """The answer of one group."""

    place: str
    where: str
    verdict: str
    name: str  # of the best row; "" where no row is verified
    time: str
    interval: str
    alike: str
    sentences: list[str]
    more: list[str]  # the rest of what can be said, to be folded
    bars: list[Bar]
    tally: str


class Cell(NamedTuple):
    """One group in the matrix."""

    group: int  # its number
    run: str  # its name, where another group has the same place
    name: str
    time: str
    price: str


class MatrixRow(NamedTuple):
    """A workload, and its groups in each column."""

    title: str
    shape: str
    cells: list[list[Cell]]


class Matrix(NamedTuple):
    """Workloads, over machines and their phases."""

    machines: list[tuple[str, int]]  # with the number of columns of each
    columns: list[tuple[str, str]]  # machine and phase
    rows: list[MatrixRow]


def first_group(document: Document) -> int:
    """The number of the group that the page opens on: one in training if there is any."""
    phases = [panel.group.phase for panel in document.panels]
    return phases.index("train") if "train" in phases else 0


def make_cards(document: Document) -> list[Card]:
    """One for each panel."""
    return [_card(document, panel) for panel in document.panels]


def _card(document: Document, panel: Panel) -> Card:
    answer = find_answer(panel.rows)
    run = document.runs[panel.group.run].run
    workload = run.workloads[panel.group.workload]
    machine = machine_name(run, panel.group.device, find_node(panel.rows))
    cautions = find_cautions(document.analysis, [panel.analysis])
    advice = [each.text for each in panel.analysis.advice]
    shown = [*advice[1:_SENTENCES], *cautions] if answer else advice[:1]
    best = answer.best if answer else None
    return Card(
        place=panel.title,
        where=f"batch {workload.batch} × {workload.steps} steps · {machine}",
        verdict=_verdict(answer),
        name=answer.name(answer.best) if answer else "",
        time=units.marked(units.seconds(best.wall_s), best.uncertain) if best else "",
        interval=units.span(best.wall_low_s, best.wall_high_s, best.wall_s) if best else "",
        alike=_alike(answer) if answer else "",
        sentences=shown,
        more=[*(text for text in advice if text not in shown), *(each.text for each in panel.analysis.summary)],
        bars=_bars(panel, answer),
        tally=_tally(panel.rows),
    )


def _verdict(answer: Answer | None) -> str:
    if answer is None:
        return "no row is verified"
    if not answer.others:
        return "the only verified row"
    return f"{'lowest time' if answer.level else 'fastest'} of {answer.others + 1} verified rows"


def _alike(answer: Answer) -> str:
    names = [answer.name(row) for row in answer.level]
    if not names:
        return ""
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return f"no difference seen to {units.listing([*names[:_NAMED], *more])}"


def _tally(rows: Sequence[Row]) -> str:
    """`34 rows: 31 verified, 1 wrong, 2 unsupported`."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.status] = counts.get(row.status, 0) + 1
    kinds = ", ".join(f"{count} {status}" for status, count in sorted(counts.items(), key=lambda one: -one[1]))
    return f"{len(rows)} row{'' if len(rows) == 1 else 's'}: {kinds}"


def _bars(panel: Panel, answer: Answer | None) -> list[Bar]:
    """Fastest first."""
    chosen = _telling(panel.verified or panel.ranked, answer)
    notes = {row_id(layer.row): layer.name for layer in answer.layers} if answer else {}
    longest = max((row.wall_high_s or 0.0 for row in chosen), default=0.0) or 1.0
    if chosen and chosen[0].wall_s:
        longest = min(longest, _LONGEST * chosen[0].wall_s)

    def part(time: float | None) -> float:
        return round(min(100.0, 100 * (time or 0.0) / longest), 2)

    return [
        Bar(
            row=row,
            name=panel.name(row),
            note="your own loop" if is_loop(row) else _other_name(notes.get(row_id(row), ""), panel.name(row)),
            length=part(row.wall_s),
            low=part(row.wall_low_s),
            high=part(row.wall_high_s),
            cut=(row.wall_high_s or 0.0) > longest,
        )
        for row in chosen
    ]


def _telling(rows: Sequence[Row], answer: Answer | None) -> list[Row]:
    """Some of the rows, in their order: the best of each framework, loops, layers, the best of each granularity."""
    of_framework: dict[str, Row] = {}
    of_granularity: dict[tuple[str, str], Row] = {}
    for row in rows:
        of_framework.setdefault(row.framework, row)
        of_granularity.setdefault((row.framework, row.granularity), row)
    costs = [cost.row for cost in (*answer.loops, *answer.layers)] if answer else []
    by_importance = map(row_id, (*of_framework.values(), *costs, *of_granularity.values(), *rows))
    wanted = set(list(dict.fromkeys(by_importance))[:_BARS])
    return [row for row in rows if row_id(row) in wanted]


def _other_name(known_as: str, name: str) -> str:
    return "" if known_as == name else known_as


def make_matrix(document: Document) -> Matrix:
    """Every group once. Training comes before the forward pass, the machines in the order of the runs."""
    places = [(_machine(document, panel), panel.group.phase) for panel in document.panels]
    machines = list(dict.fromkeys(machine for machine, _ in places))
    columns = [(machine, phase) for machine in machines for phase in ("train", "forward") if (machine, phase) in places]
    several = len({panel.group.precision for panel in document.panels}) > 1
    rows: dict[str, MatrixRow] = {}
    for number, (panel, place) in enumerate(zip(document.panels, places, strict=True)):
        title = panel.group.workload + (f" · {panel.group.precision}" if several else "")
        workload = document.runs[panel.group.run].run.workloads[panel.group.workload]
        shape = f"batch {workload.batch} × {workload.steps} steps"
        row = rows.setdefault(title, MatrixRow(title, shape, [[] for _ in columns]))
        row.cells[columns.index(place)].append(_cell(document, panel, number))
    return Matrix(
        machines=[(machine, sum(machine == other for other, _ in columns)) for machine in machines],
        columns=columns,
        rows=[_told_apart(row) for row in rows.values()],
    )


def _machine(document: Document, panel: Panel) -> str:
    """Without its node: those that are alike share a column."""
    node = find_node(panel.rows)
    name = machine_name(document.runs[panel.group.run].run, panel.group.device, node)
    return f"{panel.group.device}: {name.removeprefix(f'{node}: ')}"


def _cell(document: Document, panel: Panel, number: int) -> Cell:
    answer = find_answer(panel.rows)
    run = document.names[panel.group.run]
    if answer is None:
        return Cell(number, run, "no row is verified", "", "")
    time = units.marked(units.seconds(answer.best.wall_s), answer.best.uncertain)
    return Cell(number, run, answer.name(answer.best), time, _price(answer))


def _price(answer: Answer) -> str:
    """What a loop of one's own costs: `your loop 1.49× in pytorch, 4.12× in tensorflow`."""
    seen = [loop for loop in answer.loops if loop.seen]
    if not seen:
        return "your loop costs nothing that is seen" if answer.loops else ""
    costs = [units.marked(units.times(loop.row.ratio), loop.row.ratio_uncertain) for loop in seen]
    if len(seen) > _PRICES:
        return f"your loop {costs[0]} in {seen[0].name} to {costs[-1]} in {seen[-1].name}"
    return "your loop " + ", ".join(f"{cost} in {loop.name}" for cost, loop in zip(costs, seen, strict=True))


def _told_apart(row: MatrixRow) -> MatrixRow:
    """The runs' names are kept only where two groups have the same place."""
    return row._replace(cells=[_without_runs(cells) for cells in row.cells])


def _without_runs(cells: Iterable[Cell]) -> list[Cell]:
    kept = list(cells)
    return kept if len(kept) > 1 else [cell._replace(run="") for cell in kept]
