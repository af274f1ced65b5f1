"""The matrix of abilities: systems down, abilities across, and the reason of every no. As text, Markdown and fields."""

from collections.abc import Mapping, Sequence

import msgspec

from rnnbench import units
from rnnbench.analysis.flexibility import Price, entries_of, find_entries
from rnnbench.domain.ability import ABILITIES, MEANINGS, Entry
from rnnbench.domain.system import Manifest, System
from rnnbench.report.document import Document
from rnnbench.text import Column, escape_markdown, markdown_table, render_fitted, wrapped

HEADINGS = tuple(heading for heading, _ in MEANINGS.values())
_SHOWN = {"not tried": "–"}
LEGEND = "\n".join(f"{heading:10} {meaning}" for heading, meaning in MEANINGS.values()) + (
    f"\n{'–':10} not tried; a no is always the answer of a program that was run, or of the framework's own arguments"
)


class SystemAbilities(msgspec.Struct, frozen=True, kw_only=True):
    """What came of all abilities of one system in one environment and on one device."""

    system: str
    environment: str
    device: str
    entries: tuple[Entry, ...]  # one for each ability

    @property
    def count(self) -> str:
        """How many it has; nothing where not all were tried."""
        if any(entry.verdict == "not tried" for entry in self.entries):
            return ""
        return str(sum(entry.verdict == "yes" for entry in self.entries))


def by_system(entries: Sequence[Entry]) -> list[SystemAbilities]:
    """In the order of the entries. An ability without an entry was not tried."""
    groups: dict[tuple[str, str, str], dict[str, Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.system, entry.environment, entry.device), {})[entry.ability] = entry
    found = []
    for (system, environment, device), own in groups.items():
        any_entry = next(iter(own.values()))
        blank = msgspec.structs.replace(any_entry, verdict="not tried", reason="")
        every = (own.get(ability) or msgspec.structs.replace(blank, ability=ability) for ability in ABILITIES)
        found.append(SystemAbilities(system=system, environment=environment, device=device, entries=tuple(every)))
    return found


def show_matrix(entries: Sequence[Entry], width: int | None, reasons: bool = False, legend: bool = False) -> str:
    """For a terminal. Columns never drop: a matrix without one of them would be another."""
    rows = by_system(entries)
    names = [row.system for row in rows]
    cells = [
        [
            row.system if names.count(row.system) == 1 else f"{row.system} @ {row.environment}",
            *(_SHOWN.get(entry.verdict, entry.verdict) for entry in row.entries),
            row.count,
        ]
        for row in rows
    ]
    columns = [Column("system"), *(Column(heading) for heading in HEADINGS), Column(f"of {len(ABILITIES)}", drop=1)]
    table, _ = render_fitted(columns, cells, None)
    parts = [table]
    if reasons:
        parts.append("\n".join(_reasons(rows, width)))
    if legend:
        parts.append(LEGEND)
    return "\n\n".join(parts)


def _reasons(rows: Sequence[SystemAbilities], width: int | None) -> list[str]:
    return [
        wrapped(f"{row.system}: {entry.ability}: {entry.verdict}, {entry.reason}", "", "    ", min(width or 110, 110))
        for row in rows
        for entry in row.entries
        if entry.reason
    ]


# --- the page of the documentation ----------------------------------------------------------------------

_HEAD = """\
# Abilities

What can a system do beyond the plain layer? Each ability is a small program for each framework, run by the system's own
execution. `yes` means that its outputs and the gradients of all weights are those of the float64 reference. Every other
entry has a number, and its reason stands below the table. `–` was not tried: never read it as a no.

```
rnnbench abilities 'pytorch/*' --reasons       # try them here
rnnbench abilities --known                     # what came with rnnbench, and is in this page
rnnbench abilities --run last                  # for a run: its report then uses these entries
```

| | ability |
|---|---|
{meanings}

**How it is done.** A layer of 12 units on 5 sequences of 6 steps is given weights and inputs; the loss is the sum of
all outputs times fixed numbers. Outputs and gradients must agree to {tolerance:g} in relative L2 norm. Gradients of
gradients are compared with differences of float64 gradients. *Steps*: after 6 steps the program gets 9, and must be
right without having traced, compiled or captured anything again, by the framework's own counter where it has one. A
dropout mask is given, or read from a layer that draws its own. A row is not lent what it does not have:
`nn.LSTM` called step by step, or a cell of one's own in place of `LSTMCell`, is another row.

**Where it is used.** The first picture of a report has the time of each system over the number of its abilities, and
`rnnbench explain` says what the most flexible system costs. Programs are in `abilities.py` of a framework's folder;
adding one there is all it takes ([adding a system](adding-a-system.md)).

The entries below are from one machine, with an ARM processor. On another one a vendor's kernels may differ, above all
in gradients of gradients: try it there.

This page is written by `rnnbench abilities --known --markdown > docs/abilities.md`, and a test compares it. The entries
are in `src/rnnbench/known`; `rnnbench abilities --update` tries again and keeps what it finds.
"""


def abilities_page(
    systems: Sequence[System], entries: Sequence[Entry], manifests: Mapping[str, Manifest], tolerance: float
) -> str:
    """docs/abilities.md: a table for each framework and device."""
    meanings = "\n".join(f"| {heading} | {meaning} |" for heading, meaning in MEANINGS.values())
    parts = [_HEAD.format(meanings=meanings, tolerance=tolerance)]
    untried = []
    for framework in dict.fromkeys(system.framework for system in systems):
        own = [system.name for system in systems if system.framework == framework]
        here = [entry for entry in entries if entry.system in own]
        if not here:
            untried.append(manifests[framework].title)
        for device, version in dict.fromkeys((entry.device, entry.version) for entry in here):
            chosen = [entry for entry in here if (entry.device, entry.version) == (device, version)]
            missing = [name for name in own if name not in {entry.system for entry in chosen}]
            parts.append(_section(f"{manifests[framework].title} {version}, {device}", chosen, missing))
    if untried:
        parts.append(f"Not tried yet: {', '.join(untried)}.\n")
    return "\n".join(parts)


def _section(title: str, entries: Sequence[Entry], missing: Sequence[str]) -> str:
    reasons: dict[str, int] = {}
    rows = []
    for row in by_system(entries):
        cells = [f"`{row.system.partition('/')[2]}`"]
        for entry in row.entries:
            mark = _SHOWN.get(entry.verdict, entry.verdict)
            if entry.reason:
                mark += f" {reasons.setdefault(f'{entry.verdict}: {entry.reason}', len(reasons) + 1)}"
            cells.append(mark)
        rows.append([*cells, row.count])
    table = markdown_table(["system", *HEADINGS, f"of {len(ABILITIES)}"], rows, right=[len(HEADINGS) + 1])
    lines = [f"{number}. {escape_markdown(reason)}" for reason, number in reasons.items()]
    if missing:
        names = ", ".join(f"`{name.partition('/')[2]}`" for name in missing)
        lines.append(f"\nNot tried on this device: {names}.")
    return "\n".join([f"## {title}", "", table, "", *lines, ""])


# --- in a report ------------------------------------------------------------------------------------------


def report_rows(document: Document) -> list[SystemAbilities]:
    """Of the systems in a report, in its order, those of which something is known."""
    found: dict[tuple[str, str, str], SystemAbilities] = {}
    for contents, rows in zip(document.runs, document.analysis.rows, strict=True):
        entries = entries_of(contents)
        for row in rows:
            own = find_entries(entries, row, contents.run.environments)
            if own and row.wall_s is not None:
                (one,) = by_system(
                    [msgspec.structs.replace(each, environment=row.environment) for each in own.values()]
                )
                found.setdefault((row.system, row.environment, row.device), one)
    return list(found.values())


def price_lines(prices: Sequence[Price]) -> list[str]:
    """`own-cell (peephole) costs pytorch/packed/eager 1.12 times [1.08, 1.16]: ce-short · train …`."""
    return [
        f"{price.ability} ({price.cell}) costs {price.row} {units.times_interval(price.times)}: {price.group}"
        for price in prices
    ]


def report_markdown(document: Document) -> list[str]:
    """The parts of report.md; none where nothing is known."""
    rows = report_rows(document)
    if not rows:
        return []
    cells = [
        [
            f"`{row.system}`",
            *(_SHOWN.get(entry.verdict, entry.verdict) for entry in row.entries),
            row.count,
        ]
        for row in rows
    ]
    table = markdown_table(["", *HEADINGS, f"of {len(ABILITIES)}"], cells, right=[len(HEADINGS) + 1])
    lines = [f"- {escape_markdown(line)}" for line in price_lines(document.analysis.prices)]
    prices = "\n".join(["What was timed of them, against the plain LSTM:", "", *lines]) if lines else ""
    return ["# Abilities", table, *([prices] if prices else [])]
