"""All charts of a report: which charts a panel has, their file names, and their descriptions."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rnnbench import units
from rnnbench.domain.result import Interval
from rnnbench.report.charts.bars import bars, samples
from rnnbench.report.charts.compiling import compiling
from rnnbench.report.charts.flexibility import flexibility
from rnnbench.report.charts.gap import gap
from rnnbench.report.charts.theme import NARROW, WIDE, Look, draw, looks
from rnnbench.report.charts.versions import history, rows_with_history
from rnnbench.report.document import Document, Panel, find_node, machine_name

#: A chart takes tenths of a second. With more groups than this, only the first has charts unless more are asked for.
MOST_GROUPS = 60

#: These are files only: the page has bars of all rows, and draws the samples of any row.
FILES_ONLY = ("bars", "samples")


class Chart(NamedTuple):
    """One drawing of one panel."""

    panel: int  # its index in the document
    kind: str
    name: str  # of its files, without the ending
    description: str  # for readers who cannot see it
    svg: str
    narrow: str = ""  # the same for a telephone; "": the page does not show it


def charted(document: Document, wanted: int | None) -> int:
    """How many of the panels, from the first, have charts."""
    panels = len(document.panels)
    if wanted is not None:
        return min(wanted, panels)
    return panels if panels <= MOST_GROUPS else 1


def draw_charts(
    document: Document, panels: int, say: Callable[[str], None], *, for_page: bool = True, for_files: bool = True
) -> list[Chart]:
    """The charts of the first panels; those of the page in two widths."""
    appearance = looks(row.framework for rows in document.analysis.rows for row in rows)
    charts: list[Chart] = []
    names: set[str] = set()
    for number, panel in enumerate(document.panels[:panels]):
        say(f"charts: {number + 1} of {panels} groups")
        narrow = dict(_specifications(document, panel, appearance, NARROW)) if for_page else {}
        for kind, spec in _specifications(document, panel, appearance):
            if kind in FILES_ONLY and not for_files:
                continue
            name = _file_name(document, panel, kind, names)
            names.add(name)
            slim = draw(narrow[kind]) if kind in narrow and kind not in FILES_ONLY else ""
            charts.append(Chart(number, kind, name, _description(kind, panel), draw(spec), slim))
    return charts


def _specifications(
    document: Document, panel: Panel, look: dict[str, Look], width: int = WIDE
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Only the charts that have something to show."""
    run = document.runs[panel.group.run].run
    machine = machine_name(run, panel.group.device, find_node(panel.rows))
    analysis = panel.analysis
    if analysis.flexibility:
        subtitle = f"lower right is better; no row beats those on the line · {machine}"
        yield "flexibility", flexibility(panel, analysis.flexibility, look, subtitle, width)
    if len(panel.verified) > 1:
        limit = analysis.least.seconds if analysis.least else None
        yield "gap", gap(panel, look, " · ".join(filter(None, (_gap_in_words(panel), machine))), limit, width)
    if any(row.wall_s is not None for row in panel.rows):
        yield "bars", bars(panel, look, f"with 95 % interval and ratio to the best · {machine}")
    if analysis.break_evens:
        subtitle = f"left of a line: pays after fewer batches · {machine}"
        yield "compiling", compiling(panel, look, subtitle, analysis.break_evens, width)
    if panel.verified:
        # Of the best row, which the others are compared with.
        best = panel.verified[0]
        yield "samples", samples(panel, best, document.launches(panel.group, best), look, f"the best row · {machine}")
    if rows_with_history(panel):
        yield "history", history(panel, look, machine, run.environments, width)


def _gap_in_words(panel: Panel) -> str:
    """`fine-grained eager over best: pytorch 1.39×`."""
    names = {row.environment: row.framework for row in panel.rows}
    gaps = [
        f"{names[each.eager.environment]} {_times(each.times) if each.seen else 'no difference seen'}"
        for each in panel.analysis.gaps
    ]
    return f"fine-grained eager over best: {', '.join(gaps)}" if gaps else ""


def _times(ratio: Interval) -> str:
    return units.marked(units.times(ratio.estimate), ratio.uncertain)


def _description(kind: str, panel: Panel) -> str:
    """A chart in a sentence; the table has its numbers."""
    what = {
        "flexibility": "time of one batch over the number of abilities, one point for each system, with the front",
        "gap": "time of one batch over granularity, one line for each framework and execution",
        "bars": "bars of the time of one batch with interval and ratio",
        "compiling": "compile time against steady time with break-even lines",
        "samples": "samples of the best row in the order they were taken",
        "history": "time of one batch over versions",
    }[kind]
    return f"{panel.title}: {what}. {' '.join(each.text for each in panel.analysis.summary[:1])}".strip()


def _file_name(document: Document, panel: Panel, kind: str, taken: set[str]) -> str:
    group = panel.group
    run = (document.names[group.run],) if document.has_several_runs else ()
    parts = (kind, *run, group.workload, group.phase, group.device, group.precision)
    name = plain = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", part).strip("-.") for part in parts)[:150]
    number = 2
    while name in taken:
        name, number = f"{plain}-{number}", number + 1
    return name
