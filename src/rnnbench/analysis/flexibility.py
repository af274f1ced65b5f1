"""Speed over flexibility: how many abilities each row has, the front of rows that no other beats, what abilities cost.

A row counts as many abilities as its numbers have proved. Rows whose abilities were not tried are not on the picture:
that something was not tried is no sign that it cannot be done.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rnnbench import units
from rnnbench.analysis.advice import Advice
from rnnbench.analysis.row import Group, MeasuredRow, Row, RowId, is_verified, over, row_id, short_names
from rnnbench.domain.ability import ABILITIES, CELL_ABILITIES, Entry, Verdict, plain_version
from rnnbench.domain.result import Interval
from rnnbench.domain.run import Environment, Run
from rnnbench.domain.workload import Workload
from rnnbench.known import known_entries
from rnnbench.stats.intervals import difference_verdict
from rnnbench.store import Contents

#: (system, device, version of the framework) -> ability -> entry
Entries = dict[tuple[str, str, str], dict[str, Entry]]


class FlexibleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A verified row all of whose abilities were tried."""

    row: RowId
    abilities: tuple[str, ...]  # that it has
    wall_s: float
    on_front: bool  # no other row has as many abilities and is as fast

    @property
    def count(self) -> int:
        return len(self.abilities)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(ability for ability in ABILITIES if ability not in self.abilities)


class Flexibility(msgspec.Struct, frozen=True, kw_only=True):
    """Of one group."""

    rows: tuple[FlexibleRow, ...]  # fastest first
    untried: int  # verified rows that are left out
    fastest: RowId  # of all verified rows, tried or not
    most: RowId  # the fastest of those with the most abilities
    costs: Interval  # the time of `most` over that of `fastest`

    @property
    def front(self) -> tuple[FlexibleRow, ...]:
        return tuple(row for row in self.rows if row.on_front)

    def of(self, row: RowId) -> FlexibleRow | None:
        """None: it was not tried."""
        return next((one for one in self.rows if one.row == row), None)


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What an ability costs a row: its time with a cell that shows the ability, over that with the plain LSTM."""

    group: Group  # of the plain LSTM
    row: RowId
    ability: str
    cell: str
    times: Interval


def entries_of(contents: Contents) -> Entries:
    """What is known of the run's systems: what came with rnnbench, and over it what was tried for this run."""
    found: Entries = {}
    for entry in (*known_entries(), *contents.abilities):
        found.setdefault((entry.system, entry.device, entry.version), {})[entry.ability] = entry
    return found


def find_entries(entries: Entries, row: Row, environments: Mapping[str, Environment]) -> dict[str, Entry]:
    """What is known of a row's system in the version that it ran in, by ability."""
    environment = environments.get(row.environment)
    return entries.get((row.system, row.device, plain_version(environment.version) if environment else ""), {})


def verdicts_of(entries: Entries, row: MeasuredRow, environments: Mapping[str, Environment]) -> dict[str, Verdict]:
    """The verdict on each ability of a row; `not tried` where there is no entry."""
    own = find_entries(entries, row.row, environments)
    return {ability: own[ability].verdict if ability in own else "not tried" for ability in ABILITIES}


def find_flexibility(rows: Sequence[MeasuredRow], entries: Entries, run: Run) -> Flexibility | None:
    """None where fewer than two verified rows have entries: there is no picture of one point."""
    verified = sorted((one for one in rows if is_verified(one.row)), key=lambda one: one.wall.estimate)
    verdicts = {row_id(one.row): verdicts_of(entries, one, run.environments) for one in verified}
    tried = [one for one in verified if "not tried" not in verdicts[row_id(one.row)].values()]
    if len(tried) < 2:
        return None
    able = {
        one: tuple(ability for ability, verdict in own.items() if verdict == "yes") for one, own in verdicts.items()
    }
    found: list[FlexibleRow] = []
    most = -1
    for one in tried:  # fastest first: a row is on the front if it has more abilities than every faster one
        identity = row_id(one.row)
        count = len(able[identity])
        found.append(
            FlexibleRow(row=identity, abilities=able[identity], wall_s=one.wall.estimate, on_front=count > most)
        )
        most = max(most, count)
    last = next(one for one in tried if len(able[row_id(one.row)]) == most)
    return Flexibility(
        rows=tuple(found),
        untried=len(verified) - len(tried),
        fastest=row_id(verified[0].row),
        most=row_id(last.row),
        costs=over(last, verified[0]),
    )


def advise_flexibility(flexibility: Flexibility | None, rows: Iterable[MeasuredRow]) -> tuple[Advice, ...]:
    """What the fastest row with the most abilities costs over the fastest row."""
    if flexibility is None:
        return ()
    names = short_names(one.row for one in rows)
    most, fastest = flexibility.of(flexibility.most), flexibility.of(flexibility.fastest)
    assert most is not None
    what = f"all {len(ABILITIES)} abilities" if not most.missing else f"{most.count} of {len(ABILITIES)} abilities"
    lacking = f" It lacks {units.listing(most.missing)}." if 0 < len(most.missing) < 4 else ""
    if most is fastest:
        return (Advice(f"The fastest, {names[most.row]}, also has the most abilities: {what}.{lacking}", (most.row,)),)
    if difference_verdict(flexibility.costs) != "slower":
        cost = "no difference seen from"
    else:
        cost = units.marked(units.times(flexibility.costs.estimate), flexibility.costs.uncertain)
    has = f"has {fastest.count}" if fastest else "was not tried"
    text = f"For {what} use {names[most.row]}: {cost} the fastest, which {has}.{lacking}"
    return (Advice(text, (most.row, flexibility.fastest)),)


def find_prices(run: Run, groups: Sequence[tuple[Group, Sequence[MeasuredRow]]]) -> tuple[Price, ...]:
    """Of every row that was timed with the plain LSTM and with a cell that shows an ability, all else being equal."""
    prices: list[Price] = []
    for group, rows in groups:
        workload = run.workloads[group.workload]
        for plain, base in groups:
            if workload.cell not in CELL_ABILITIES or not _is_plain(plain, base_of=group, run=run, workload=workload):
                continue
            by_id = {row_id(one.row): one for one in base if is_verified(one.row)}
            prices += [
                Price(
                    group=plain,
                    row=row_id(one.row),
                    ability=CELL_ABILITIES[workload.cell],
                    cell=workload.cell,
                    times=over(one, by_id[row_id(one.row)]),
                )
                for one in rows
                if is_verified(one.row) and row_id(one.row) in by_id
            ]
    return tuple(prices)


def _is_plain(group: Group, *, base_of: Group, run: Run, workload: Workload) -> bool:
    """Whether a group is the other one with the LSTM."""
    plain = run.workloads[group.workload]
    if plain.cell != "lstm" or msgspec.structs.replace(workload, cell="lstm", name=plain.name) != plain:
        return False
    return msgspec.structs.replace(group, workload=base_of.workload) == base_of
