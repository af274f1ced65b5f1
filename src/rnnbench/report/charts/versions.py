"""Charts over versions: of `rnnbench history`, relative to the newest version, and of a panel of a report.

Published times of other versions are in a separate chart with its own axis, since they come from another machine.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt
from packaging.version import Version

from rnnbench import units
from rnnbench.analysis.history import HistoryLine, HistoryPoint
from rnnbench.analysis.row import Row
from rnnbench.domain.run import Environment
from rnnbench.domain.system import version_key
from rnnbench.published.rows import version_of
from rnnbench.report.charts.labels import place_labels, text_width
from rnnbench.report.charts.marks import (
    ONCE,
    ROWS,
    Data,
    by_framework,
    ends,
    finish,
    log_domain,
    log_place,
    log_ratio,
    log_time,
    plot_width,
    point,
    series,
    time_label,
)
from rnnbench.report.charts.theme import MUTED, WIDE, Look, looks
from rnnbench.report.document import Panel

_HEIGHT = 320
_PUBLISHED = 0.32  # of the width of a drawing that has room for both charts side by side


def versions(lines: Sequence[HistoryLine], *, title: str, subtitle: str, width: int = WIDE) -> dict[str, Any]:
    """Lines of one framework and group. Only points with a ratio are drawn, and there must be at least one.

    The published chart is on the left of the measured one, or below it where the drawing is narrow.
    """
    look = looks(_legend(line, lines) for line in lines)
    if not any(line.published for line in lines):
        return _measured(lines, look, title, subtitle, width)
    beside = width == WIDE
    left = round(_PUBLISHED * width) if beside else width
    published = _published(lines, look, left)
    measured = _measured(lines, look, title, subtitle, width - left if beside else width)
    datasets = {**published.pop("datasets"), **measured.pop("datasets")}
    top_level = ("$schema", "config", "autosize")  # not allowed in a part of a specification
    parts = [{key: value for key, value in part.items() if key not in top_level} for part in (published, measured)]
    for part in parts:
        part["width"] = plot_width(part["width"])  # parts of a drawing are not fitted to a width
    own = {"color": "independent", "shape": "independent"}  # only the measured chart has a legend
    return {
        "$schema": measured["$schema"],
        **({"hconcat": parts} if beside else {"vconcat": parts[::-1]}),
        "resolve": {"scale": own, "legend": own},
        "datasets": datasets,
    }


def compared(line: HistoryLine) -> list[HistoryPoint]:
    """The points that are drawn."""
    return [point for point in line.points if point.ratio is not None]


def _measured(
    lines: Sequence[HistoryLine], look: dict[str, Look], title: str, subtitle: str, width: int
) -> dict[str, Any]:
    points = [(line, point) for line in lines for point in compared(line)]
    two_frameworks = any(line.predecessor for line in lines)  # a historic one and its successor
    order = list(dict.fromkeys(_release(point, two_frameworks) for _, point in sorted(points, key=_version_order)))
    low, high = log_domain(end for _, point in points for end in _ends(point))
    data: Data = [
        {
            "framework": _legend(line, lines),  # the field that determines colours
            "about": f"{_name(line, lines)} in {point.version}: {_ratio(point)}, {_time(point)} a batch",
            "version": _release(point, two_frameworks),
            "series": f"{line.name} {point.run}",
            "wall": point.ratio,
            "low": point.ratio_low,
            "high": point.ratio_high,
            "label": "" if point.newest else _ratio(point),
        }
        for line, point in points
    ]
    # Most changed first: what is level with the newest is read from the line at 1.
    importance = sorted(range(len(data)), key=lambda index: -abs((data[index]["wall"] or 1.0) - 1.0))
    _place_all(data, order, importance, low, high, width)
    base = alt.Chart(ROWS).encode(x=_version_axis(order, width))
    up = log_ratio(low, high, "time of one batch relative to the newest version")
    newest = alt.Chart(ONCE).mark_rule(color=MUTED.light, strokeDash=[5, 4], strokeWidth=1.2)
    colour, shape = by_framework(look, look, width)
    lines_of = series(base, up, detail="series", colour=colour, shape=shape, data=data)
    layers = [newest.encode(y=alt.YDatum(1.0)), *lines_of]
    return finish(layers, data, title=title, subtitle=subtitle, width=width, height=_HEIGHT)


def _published(lines: Sequence[HistoryLine], look: dict[str, Look], width: int) -> dict[str, Any]:
    rows = [(line, row) for line in lines for row in line.published]
    order = sorted({version_of(row) for _, row in rows}, key=version_key)
    low, high = log_domain(row.wall_s for _, row in rows if row.wall_s)
    data: Data = [
        {
            "framework": _legend(line, lines),
            "about": f"{_name(line, lines)} in {version_of(row)}, published: {units.seconds(row.wall_s)} a batch",
            "version": version_of(row),
            "series": line.name,
            "wall": row.wall_s,
            "low": row.wall_s,  # no interval was published
            "high": row.wall_s,
            "label": units.seconds(row.wall_s),
        }
        for line, row in sorted(rows, key=lambda pair: pair[1].wall_s or 0.0, reverse=True)
    ]
    _place_all(data, order, range(len(data)), low, high, width)
    first = rows[0][1]
    base = alt.Chart(alt.NamedData("published")).encode(x=_version_axis(order, width))
    up = log_time(low, high, "published time of one batch")
    colour, shape = by_framework(look, look, width, explained=False)
    return finish(
        series(base, up, detail="series", colour=colour, shape=shape, data=data),
        [],
        title=f"Published in {first.year}",
        subtitle=f"another machine: {first.hardware}",
        width=width,
        height=_HEIGHT,
        published=data,
    )


def _ratio(point: HistoryPoint) -> str:
    return units.marked(units.times(point.ratio), point.ratio_uncertain)


def _time(point: HistoryPoint) -> str:
    return units.marked(units.seconds(point.wall_s), point.uncertain)


def _place_all(
    data: Data, order: Sequence[str], importance: Sequence[int], low: float, high: float, width: int
) -> None:
    """Decide on which side of its point each label is, where it has room."""
    room = plot_width(width)
    spots = [
        (
            room * (order.index(datum["version"]) + 0.5) / len(order),
            _HEIGHT - log_place(datum["wall"], low, high, _HEIGHT),
        )
        for datum in data
    ]
    texts = [datum["label"] for datum in data]
    sides = place_labels(spots, texts, importance, width=room, height=_HEIGHT)
    for datum, side in zip(data, sides, strict=True):
        datum["side"] = side


def _version_axis(order: Sequence[str], width: int) -> alt.X:
    crowded = max(map(text_width, order)) > plot_width(width) / len(order)
    return alt.X(
        "version",
        type="nominal",
        title=None,
        scale=alt.Scale(type="point", padding=0.5, domain=list(order)),
        axis=alt.Axis(labelAngle=-90 if crowded else 0, grid=True),
    )


def _name(line: HistoryLine, lines: Sequence[HistoryLine]) -> str:
    """For the legend: the current system, or the historic one where several have the same successor."""
    same = sum(other.system == line.system for other in lines)
    return line.predecessor if same > 1 and line.predecessor else line.system


def _legend(line: HistoryLine, lines: Sequence[HistoryLine]) -> str:
    """The name with the time of the newest version, where all lines meet and no label has room."""
    newest = next((point for point in line.points if point.newest), None)
    return f"{_name(line, lines)} · {_time(newest)}" if newest else _name(line, lines)


def _release(point: HistoryPoint, two_frameworks: bool) -> str:
    return point.release if two_frameworks else point.version


def _version_order(pair: tuple[HistoryLine, HistoryPoint]) -> tuple[bool, str, Version]:
    """A historic framework comes before its successor."""
    line, point = pair
    framework = point.system.partition("/")[0]
    return framework == line.framework, framework, version_key(point.version)


def _ends(point: HistoryPoint) -> list[float]:
    return [end for end in (point.ratio_low, point.ratio, point.ratio_high) if end is not None]


def rows_with_history(panel: Panel) -> list[Row]:
    """The verified rows whose system has rows in several environments."""
    environments: dict[str, set[str]] = {}
    for row in panel.verified:
        environments.setdefault(row.system, set()).add(row.environment)
    return [row for row in panel.verified if len(environments[row.system]) > 1]


def history(
    panel: Panel, looks: dict[str, Look], subtitle: str, environments: dict[str, Environment], width: int = WIDE
) -> dict[str, Any]:
    """A line for each system over its environments, oldest first, with a label at the end."""
    rows = rows_with_history(panel)
    order = sorted(
        {row.environment for row in rows},
        key=lambda name: (environments[name].framework, version_key(environments[name].version), name),
    )
    newest = {row.system: row for row in sorted(rows, key=lambda row: order.index(row.environment))}
    low, high = log_domain(ends(rows))
    data = [
        {
            **point(row, panel.name(row)),
            "version": row.environment,
            "system": row.system,
            "label": f"{row.system} · {time_label(row)}" if newest[row.system] is row else "",
        }
        for row in rows
    ]
    _place_all(data, order, range(len(rows)), low, high, width)
    base = alt.Chart(ROWS).encode(x=_version_axis(order, width))
    colour, shape = by_framework((row.framework for row in rows), looks, width)
    up = log_time(low, high, "time of one batch")
    layers = series(base, up, detail="system", colour=colour, shape=shape, data=data)
    title = f"From version to version: {panel.title}"
    return finish(layers, data, title=title, subtitle=subtitle, width=width, height=_HEIGHT)
