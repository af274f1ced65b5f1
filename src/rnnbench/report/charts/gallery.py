"""All charts of a report: which a panel has, what their files are called, and what each says in words."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rnnbench import units
from rnnbench.report.charts.bars import bars, samples
from rnnbench.report.charts.compiling import compiling
from rnnbench.report.charts.gap import gap
from rnnbench.report.charts.theme import Look, draw, looks
from rnnbench.report.charts.versions import history, with_history
from rnnbench.report.document import Document, Panel, machine_name

#: Drawing takes tenths of a second. A run of more groups than this is a data set rather than something
#: to leaf through, and only its first group has charts unless more are asked for.
ALL_OF = 60
FIRST_OF_MANY = 1


class Chart(NamedTuple):
    """One drawing of one panel."""

    panel: int  # its place in the document
    kind: str
    name: str  # of its files, without the ending
    words: str  # what it shows, for who cannot see it
    svg: str


def charted(document: Document, wanted: int | None) -> int:
    """How many of the panels have charts, from the first."""
    panels = len(document.panels)
    if wanted is not None:
        return min(wanted, panels)
    return panels if panels <= ALL_OF else FIRST_OF_MANY


def draw_charts(document: Document, panels: int, say: Callable[[str], None]) -> list[Chart]:
    """The charts of the first panels."""
    appearance = looks(row.framework for rows in document.analysis.rows for row in rows)
    charts: list[Chart] = []
    names: set[str] = set()
    for number, panel in enumerate(document.panels[:panels]):
        say(f"charts: {number + 1} of {panels} groups")
        for kind, spec in _specifications(document, panel, appearance):
            name = _file_name(document, panel, kind, names)
            names.add(name)
            charts.append(Chart(number, kind, name, _words(kind, panel), draw(spec)))
    return charts


def _specifications(document: Document, panel: Panel, look: dict[str, Look]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Only such as have something to show."""
    run = document.runs[panel.group.run].run
    place = machine_name(run, panel.group.device)
    found = panel.found
    if len(panel.verified) > 1:
        limit = found.least.seconds if found.least else None
        yield "gap", gap(panel, look, " · ".join(filter(None, (_gap_in_words(panel), place))), limit)
    if any(row.wall_s is not None for row in panel.rows):
        yield "bars", bars(panel, look, f"with 95 % interval and ratio to the best · {place}")
    if found.break_evens:
        subtitle = f"left of a line: paid for after so many batches · {place}"
        yield "compiling", compiling(panel, look, subtitle, found.break_evens)
    if panel.verified:
        # Of the best row, which all the others are compared with; the page draws those of any row.
        best = panel.verified[0]
        yield "samples", samples(panel, best, document.launches(panel.group, best), look, f"the best row · {place}")
    if with_history(panel):
        yield "history", history(panel, look, place, run.environments)


def _gap_in_words(panel: Panel) -> str:
    """`fine-grained eager over best: pytorch 1.39×`."""
    names = {row.environment: row.framework for row in panel.rows}
    gaps = [
        f"{names[one.eager.environment]} {units.times(one.times.estimate) if one.seen else 'no difference seen'}"
        for one in panel.found.gaps
    ]
    return f"fine-grained eager over best: {', '.join(gaps)}" if gaps else ""


def _words(kind: str, panel: Panel) -> str:
    """A chart in a sentence; its numbers are in the table."""
    what = {
        "gap": "time of one batch over granularity, one line for each framework and execution",
        "bars": "bars of the time of one batch with interval and ratio",
        "compiling": "compile time against steady time with lines of break-even",
        "samples": "samples of the best row in the order they were taken",
        "history": "time of one batch over versions",
    }[kind]
    return f"{panel.title}: {what}. {' '.join(one.text for one in panel.found.summary[:1])}".strip()


def _file_name(document: Document, panel: Panel, kind: str, taken: set[str]) -> str:
    group = panel.group
    run = (document.names[group.run],) if document.several else ()
    parts = (kind, *run, group.workload, group.phase, group.device, group.precision)
    name = plain = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", part).strip("-.") for part in parts)[:150]
    number = 2
    while name in taken:
        name, number = f"{plain}-{number}", number + 1
    return name
