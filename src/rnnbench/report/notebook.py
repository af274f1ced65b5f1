"""A run as a notebook shows it: its tables and its answer in HTML, all text escaped."""

from collections.abc import Sequence

from jinja2 import Environment, StrictUndefined

from rnnbench.analysis.row import Row, row_id, short_names
from rnnbench.report.answer import show_answer
from rnnbench.report.document import ranked_rows, unranked_rows
from rnnbench.report.terminal import COLUMNS, row_cells
from rnnbench.text import printable

#: The rows below the line of a table are grey: they do not count.
_TEMPLATE = """\
{% macro line(row, colour) %}
<tr{% if colour %} style="color: {{ colour }}"{% endif %}>
{% for column, cell in row %}
<td style="text-align: {{ 'right' if column.right else 'left' }}">{{ cell }}</td>
{% endfor %}
</tr>
{% endmacro %}
{% for table in tables %}
<table>
<caption style="text-align: left">{{ table.title }}</caption>
<thead><tr>
{% for column in columns %}
<th style="text-align: {{ 'right' if column.right else 'left' }}">{{ column.heading }}</th>
{% endfor %}
</tr></thead>
<tbody>
{% for row in table.ranked %}{{ line(row, "") }}{% endfor %}
{% for row in table.unranked %}{{ line(row, "grey") }}{% endfor %}
</tbody>
</table>
{% endfor %}
<pre>{{ answer }}</pre>
"""


def rows_as_html(rows: Sequence[Row]) -> str:
    """One table for each workload, phase, device and precision, then what they answer."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_TEMPLATE).render(
        columns=COLUMNS,
        tables=[
            {
                "title": printable(" · ".join(group)),
                "ranked": _lines(ranked_rows(members), members),
                "unranked": _lines(unranked_rows(members), members),
            }
            for group, members in groups.items()
        ],
        answer=printable(show_answer(rows)),
    )


def _lines(shown: Sequence[Row], group: Sequence[Row]) -> list[list[tuple[object, str]]]:
    names = short_names(group)
    cells = ([printable(cell) for cell in row_cells(row, names[row_id(row)])] for row in shown)
    return [list(zip(COLUMNS, line, strict=True)) for line in cells]
