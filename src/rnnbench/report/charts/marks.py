"""What charts are put together from: colours by framework, text that stays readable on lines, the finished spec."""

from collections.abc import Iterable
from typing import Any

import altair as alt

from rnnbench.report.charts.theme import GROUND, MUTED, Look

Data = list[dict[str, Any]]

#: What layers refer to as their data. It is put in last: Altair would copy it with every step.
ROWS = alt.NamedData("rows")

#: For a layer that is drawn once, whatever the rows are.
ONCE = alt.InlineData(values=[{}])


def by_framework(names: Iterable[str], looks: dict[str, Look]) -> tuple[alt.Scale, alt.Scale]:
    """The scales of colour and of shape."""
    domain = sorted(set(names))
    return (
        alt.Scale(domain=domain, range=[looks[name].tone.light for name in domain]),
        alt.Scale(domain=domain, range=[looks[name].shape for name in domain]),
    )


def readable(text: alt.Chart, colour: str = MUTED.light) -> list[alt.Chart]:
    """A chart of text twice: first as a broad line of the ground's colour, so that nothing runs through it."""
    halo = text.copy(deep=True)
    halo.mark = {**text.mark.to_dict(), "stroke": GROUND.light, "strokeWidth": 4, "color": GROUND.light, "aria": False}
    text.mark["color"] = colour
    return [halo, text]


def finish(layers: list[alt.Chart], data: Data, *, title: str, subtitle: str, width: int, height: int) -> dict[str, Any]:
    """The specification. It is not checked against the schema here, which takes as long as drawing: tests do that."""
    chart = alt.layer(*layers).properties(
        width=width, height=height, title=alt.TitleParams(text=title, subtitle=subtitle)
    )
    spec = chart.to_dict(validate=False)
    return {**spec, "datasets": {**spec.get("datasets", {}), "rows": data}}
