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
from rnnbench.report.charts.marks import (
    ONCE,
    ROWS,
    Data,
    ends,
    finish,
    label_positions,
    log_domain,
    log_ratio,
    log_time,
    point,
    series,
    time_label,
    wall_of,
)
from rnnbench.report.charts.theme import MUTED, Look, looks
from rnnbench.report.document import Panel

_COLUMN = 84  # points between two versions
_HEIGHT = 300


def versions(lines: Sequence[HistoryLine], *, title: str, subtitle: str) -> dict[str, Any]:
    """Lines of one framework and group. Only points with a ratio are drawn, and there must be at least one."""
    look = looks(_name(line, lines) for line in lines)
    measured = _measured(lines, look, title, subtitle)
    if not any(line.published for line in lines):
        return measured
    published = _published(lines, look)
    datasets = {**published.pop("datasets"), **measured.pop("datasets")}
    top_level = ("$schema", "config")  # not allowed in a part of a specification
    parts = [{key: value for key, value in part.items() if key not in top_level} for part in (published, measured)]
    return {"$schema": measured["$schema"], "hconcat": parts, "spacing": 56, "datasets": datasets}


def compared(line: HistoryLine) -> list[HistoryPoint]:
    """The points that are drawn."""
    return [point for point in line.points if point.ratio is not None]


def _measured(lines: Sequence[HistoryLine], look: dict[str, Look], title: str, subtitle: str) -> dict[str, Any]:
    points = [(line, point) for line in lines for point in compared(line)]
    two_frameworks = any(line.predecessor for line in lines)  # a historic one and its successor
    order = list(dict.fromkeys(_release(point, two_frameworks) for _, point in sorted(points, key=_version_order)))
    low, high = log_domain(end for _, point in points for end in _ends(point))
    # All lines end at 1, where the labels are sorted by time, slowest on top.
    points.sort(key=lambda pair: (pair[1].ratio or 0.0, pair[1].wall_s or 0.0), reverse=True)
    data: Data = [
        {
            "framework": _name(line, lines),  # the field that determines colours
            "version": _release(point, two_frameworks),
            "series": f"{line.name} {point.run}",
            "wall": point.ratio,
            "low": point.ratio_low,
            "high": point.ratio_high,
            "label": f"{_name(line, lines)} · {units.marked(units.seconds(point.wall_s), point.uncertain)}"
            if point.newest
            else units.marked(units.times(point.ratio), point.ratio_uncertain),
        }
        for line, point in points
    ]
    _place_labels(data, low, high)
    base = alt.Chart(ROWS).encode(x=_version_axis(order, -30 if two_frameworks else 0))
    up = log_ratio(low, high, "time of one batch relative to the newest version")
    newest = alt.Chart(ONCE).mark_rule(color=MUTED.light, strokeDash=[5, 4], strokeWidth=1.2)
    layers = [newest.encode(y=alt.YDatum(1.0)), *series(base, up, detail="series", looks=look, names=look)]
    return finish(layers, data, title=title, subtitle=subtitle, width=_width(order), height=_HEIGHT)


def _published(lines: Sequence[HistoryLine], look: dict[str, Look]) -> dict[str, Any]:
    rows = [(_name(line, lines), row) for line in lines for row in line.published]
    order = sorted({version_of(row) for _, row in rows}, key=version_key)
    low, high = log_domain(row.wall_s for _, row in rows if row.wall_s)
    data: Data = [
        {
            "framework": name,
            "version": version_of(row),
            "series": name,
            "wall": row.wall_s,
            "low": row.wall_s,  # no interval was published
            "high": row.wall_s,
            "label": units.seconds(row.wall_s),
        }
        for name, row in sorted(rows, key=lambda pair: pair[1].wall_s or 0.0, reverse=True)
    ]
    _place_labels(data, low, high)
    first = rows[0][1]
    base = alt.Chart(alt.NamedData("published")).encode(x=_version_axis(order))
    up = log_time(low, high, "published time of one batch")
    return finish(
        series(base, up, detail="series", looks=look, names=look),
        [],
        title=f"Published in {first.year}",
        subtitle=f"another machine: {first.hardware}",
        width=_width(order),
        height=_HEIGHT,
        published=data,
    )


def _place_labels(data: Data, low: float, high: float) -> None:
    """Moves the labels of each version apart; the data must be sorted, largest first."""
    for version in {datum["version"] for datum in data}:
        here = [datum for datum in data if datum["version"] == version]
        places = label_positions([datum["wall"] for datum in here], low, high, _HEIGHT)
        for datum, place in zip(here, places, strict=True):
            datum["place"] = place


def _version_axis(order: Sequence[str], angle: int = 0) -> alt.X:
    return alt.X(
        "version",
        type="nominal",
        title=None,
        scale=alt.Scale(type="point", padding=0.5, domain=list(order)),
        axis=alt.Axis(labelAngle=angle, grid=True),
    )


def _width(order: Sequence[str]) -> int:
    return _COLUMN * max(2, len(order))


def _name(line: HistoryLine, lines: Sequence[HistoryLine]) -> str:
    """For the legend: the current system, or the historic one where several have the same successor."""
    same = sum(other.system == line.system for other in lines)
    return line.predecessor if same > 1 and line.predecessor else line.system


def _release(point: HistoryPoint, two_frameworks: bool) -> str:
    return point.release if two_frameworks else point.version


def _version_order(pair: tuple[HistoryLine, HistoryPoint]) -> tuple[bool, str, Version]:
    """A historic framework comes before its successor."""
    line, point = pair
    framework = point.system.partition("/")[0]
    return framework == line.framework, framework, version_key(point.version)


def _ends(point: HistoryPoint) -> list[float]:
    return [end for end in (point.ratio_low, point.ratio, point.ratio_high) if end is not None]


_PANEL_HEIGHT = 340


def rows_with_history(panel: Panel) -> list[Row]:
    """The verified rows whose system has rows in several environments."""
    environments: dict[str, set[str]] = {}
    for row in panel.verified:
        environments.setdefault(row.system, set()).add(row.environment)
    return [row for row in panel.verified if len(environments[row.system]) > 1]


def history(
    panel: Panel, looks: dict[str, Look], subtitle: str, environments: dict[str, Environment]
) -> dict[str, Any]:
    """A line for each system over its environments, oldest first, with a label at the end."""
    rows = rows_with_history(panel)
    order = sorted(
        {row.environment for row in rows},
        key=lambda name: (environments[name].framework, version_key(environments[name].version), name),
    )
    newest = {row.system: row for row in sorted(rows, key=lambda row: order.index(row.environment))}
    low, high = log_domain(ends(rows))
    places: dict[str, float] = {}
    for environment in order:
        last = sorted((row for row in newest.values() if row.environment == environment), key=wall_of, reverse=True)
        labels = label_positions([wall_of(row) for row in last], low, high, _PANEL_HEIGHT)
        places.update({row.system: label for row, label in zip(last, labels, strict=True)})
    data = [
        {
            **point(row),
            "environment": row.environment,
            "system": row.system,
            "place": places[row.system],
            "label": f"{row.system} · {time_label(row)}" if newest[row.system] is row else "",
        }
        for row in rows
    ]
    base = alt.Chart(ROWS).encode(
        x=alt.X(
            "environment",
            type="nominal",
            title=None,
            scale=alt.Scale(type="point", padding=0.5, domain=order),
            axis=alt.Axis(labelAngle=-30, grid=True),
        )
    )
    layers = series(
        base,
        log_time(low, high, "time of one batch"),
        detail="system",
        looks=looks,
        names=(row.framework for row in rows),
    )
    title = f"From version to version: {panel.title}"
    return finish(
        layers, data, title=title, subtitle=subtitle, width=_COLUMN * max(5, len(order)), height=_PANEL_HEIGHT
    )
