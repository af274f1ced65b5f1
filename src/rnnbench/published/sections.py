"""The published tables in reports: the claims as text and Markdown, and published rows next to measured ones."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rnnbench import units
from rnnbench.analysis.row import Row, is_verified
from rnnbench.published.audit import audit_table, read_table
from rnnbench.published.claims import Claim, ClaimComparison, ClaimPart
from rnnbench.published.rows import TABLES, Published, published_rows
from rnnbench.text import escape_markdown, markdown_code, markdown_table, wrapped
from rnnbench.units import listing


class PublishedComparison(NamedTuple):
    """One published row, and a measured row of the same program if there is one."""

    published: Published
    run: str = ""
    measured: Row | None = None
    contradicts: bool = False  # the published row contradicts itself: its time may be a misprint

    @property
    def times_faster(self) -> float | None:
        if self.measured is None or not self.measured.wall_s or self.published.wall_s is None:
            return None
        return self.published.wall_s / self.measured.wall_s


def compare_with_published(names: Sequence[str], runs: Sequence[Sequence[Row]]) -> list[PublishedComparison]:
    """All published rows for the workloads and phases of these runs, in the order they were printed."""
    measured: dict[tuple[str, str, str, str], list[tuple[str, Row]]] = {}
    for name, rows in zip(names, runs, strict=True):
        for row in rows:
            if row.seed_label and is_verified(row) and row.precision == "fp32":
                key = (row.workload, row.phase, row.device, row.seed_label.casefold())
                measured.setdefault(key, []).append((name, row))
    doubtful = _doubtful()
    groups = {(row.workload, row.phase) for rows in runs for row in rows}
    comparisons: list[PublishedComparison] = []
    for published in published_rows():
        if (published.workload, published.phase) in groups and published.wall_s is not None:
            row_key = (published.workload, published.phase, published.device, published.seed_label.casefold())
            pairs: Sequence[tuple[str, Row | None]] = measured.get(row_key) or [("", None)]
            comparisons += [PublishedComparison(published, name, row, published in doubtful) for name, row in pairs]
    return comparisons


def _doubtful() -> set[Published]:
    """The published rows that contradict themselves, as `rnnbench audit` finds them."""
    lines = read_table(TABLES[0])
    rows = {line.number: row for line, row in zip(lines, published_rows(), strict=False)}
    return {rows[suspect.line.number] for suspect in audit_table(TABLES[0].name, lines, lines).suspects}


def claims_as_markdown(claims: Sequence[Claim]) -> Iterator[str]:
    """The four quick conclusions of Carrot (2019), each with its verdict here and on the published tables."""
    if not claims:
        return
    yield "# The Quick Conclusions of Carrot (2019)"
    yield "Each is tested on this report's numbers and, in parentheses, on its own tables (github.com/lcy-seso/Carrot)."
    for claim in claims:
        lines = [f"{claim.number}.  {escape_markdown(claim.text)} **{claim.verdict}** ({claim.published_verdict})"]
        lines += [
            f"    -   {escape_markdown(part.statement)} **{part.verdict}** ({part.published_verdict})"
            for part in claim.parts
        ]
        yield "\n".join(lines)
        measured = [(each, each.measured) for part in claim.parts for each in part.comparisons if each.measured]
        if measured:
            rows = [
                [
                    escape_markdown(each.statement),
                    units.times(each.published),
                    units.marked(units.times(ratio.estimate), ratio.uncertain),
                    f"{units.times(ratio.low)} to {units.times(ratio.high)}",
                    each.verdict,
                    escape_markdown(each.remark),
                ]
                for each, ratio in measured
            ]
            yield markdown_table(
                ["ratio claimed to be over 1", "2019", "here", "95 % interval", "verdict", ""], rows, right=(1, 2, 3)
            )


def published_as_markdown(comparisons: Sequence[PublishedComparison]) -> Iterator[str]:
    if not comparisons:
        return
    yield "# Published for the Same Models"
    yield "Times of one batch. A measured row next to a published one is the same program on this machine."
    if any(each.contradicts for each in comparisons):
        yield "† The published row contradicts itself: its elapsed time or throughput implies another time."
    headings = [
        "published row",
        "workload",
        "phase",
        "when and where",
        "published",
        "measured",
        "measured row",
        "times as fast",
    ]
    rows = [
        [
            escape_markdown(each.published.name),
            escape_markdown(each.published.workload),
            each.published.phase,
            escape_markdown(each.published.when_and_where),
            units.seconds(each.published.wall_s) + ("†" if each.contradicts else ""),
            units.marked(units.seconds(each.measured.wall_s), each.measured.uncertain) if each.measured else "–",
            markdown_code(f"{each.measured.system} @ {each.measured.environment}") if each.measured else "",
            units.marked(units.times(each.times_faster), each.measured is not None and each.measured.uncertain),
        ]
        for each in comparisons
    ]
    yield markdown_table(headings, rows, right=(4, 5, 7))


def claims_as_text(claims: Sequence[Claim]) -> str:
    parts = ["Quick conclusions of Carrot (2019; GeForce RTX 2080 Ti and a 6-core CPU), tested here on ptb-lm"]
    for claim in claims:
        lines = [wrapped(f"{claim.number}. “{claim.text}”", "", "   "), f"   {_verdicts(claim)}"]
        lines += [wrapped(f"Not measured or not verified {missing}.", "   ", "   ") for missing in _missing(claim)]
        parts.append("\n".join([*lines, *map(_part, claim.parts)]))
    return "\n\n".join(parts)


def _verdicts(claim: Claim | ClaimPart) -> str:
    return f"{claim.verdict} (in the published tables: {claim.published_verdict})"


def _missing(claim: Claim) -> list[str]:
    """`on cpu: TF Eager and TF Graph`: what is missing to judge the whole claim."""
    labels: dict[str, list[str]] = {}
    for comparison in (each for part in claim.parts for each in part.comparisons):
        for factor in (*comparison.over, *comparison.under):
            if factor.row is None and factor.label not in labels.setdefault(factor.device, []):
                labels[factor.device].append(factor.label)
    return [f"on {device}: {listing(names)}" for device, names in labels.items() if names]


def _part(part: ClaimPart) -> str:
    """Its figures: measured and published, or published alone where nothing was measured."""
    lines = [wrapped(f"{part.statement}: {_verdicts(part)}", "   • ", "     ")]
    measured = [each for each in part.comparisons if each.measured is not None]
    lines += [wrapped(_comparison(each), "       ", "         ") for each in measured]
    missing = [each for each in part.comparisons if each.measured is None]
    if missing:
        published = ", ".join(units.times(each.published) for each in missing)
        lines.append(wrapped(f"not measured: {len(missing)} ratios, 2019 {published}", "       ", "         "))
    return "\n".join(lines)


def _comparison(one: ClaimComparison) -> str:
    assert one.measured is not None
    remark = f": {one.remark}" if one.remark else ""
    times = units.marked(units.times(one.measured.estimate), one.measured.uncertain)
    measured = f"{times} {units.span(one.measured.low, one.measured.high, 1.0)}"
    return f"{one.statement}: {measured}, 2019 {units.times(one.published)}, {one.verdict}{remark}"
