"""What was published, in reports: the claims as text and Markdown, and published rows beside measured ones."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rnnbench import units
from rnnbench.analysis.row import Row
from rnnbench.published.audit import audit_table, read_table
from rnnbench.published.claims import Claim, ClaimComparison, ClaimPart
from rnnbench.published.rows import TABLES, Published, published_rows
from rnnbench.text import escape_markdown, markdown_code, markdown_table, wrapped
from rnnbench.units import listing


class PublishedComparison(NamedTuple):
    """One published row, and the measured one that stands for it, where there is one."""

    published: Published
    run: str = ""
    measured: Row | None = None
    contradicts: bool = False  # the published row contradicts itself, so its time may be a misprint

    @property
    def times_faster(self) -> float | None:
        if self.measured is None or not self.measured.wall_s or self.published.wall_s is None:
            return None
        return self.published.wall_s / self.measured.wall_s


def compare_with_published(names: Sequence[str], runs: Sequence[Sequence[Row]]) -> list[PublishedComparison]:
    """All that was published about these runs' workloads at their own sizes, in the order it was printed."""
    measured: dict[tuple[str, str, str, str], list[tuple[str, Row]]] = {}
    for name, rows in zip(names, runs, strict=True):
        for row in rows:
            if row.seed_label and row.status == "verified" and row.precision == "fp32":
                key = (row.workload, row.phase, row.device, row.seed_label.casefold())
                measured.setdefault(key, []).append((name, row))
    doubtful = _doubtful()
    groups = {(row.workload, row.phase) for rows in runs for row in rows}
    found: list[PublishedComparison] = []
    for one in published_rows():
        if (one.workload, one.phase) in groups and one.wall_s is not None:
            same: Sequence[tuple[str, Row | None]] = measured.get(
                (one.workload, one.phase, one.device, one.seed_label.casefold()), []
            )
            pairs = same or [("", None)]
            found += [PublishedComparison(one, name, row, one in doubtful) for name, row in pairs]
    return found


def _doubtful() -> set[Published]:
    """The rows that `rnnbench audit` names."""
    lines = read_table(TABLES[0])
    rows = {line.number: row for line, row in zip(lines, published_rows(), strict=False)}
    return {rows[one.line.number] for one in audit_table(TABLES[0].name, lines, lines).suspects}


def claims_as_markdown(claims: Sequence[Claim]) -> Iterator[str]:
    """The four quick conclusions of 2019, tested here and, beside it, on the tables they were drawn from."""
    if not claims:
        return
    yield "# The Quick Conclusions of 2019"
    yield "Each is tested on this report's numbers and, in brackets, on the tables it was drawn from."
    for claim in claims:
        lines = [f"{claim.number}.  {escape_markdown(claim.text)} **{claim.verdict}** ({claim.published_verdict})"]
        lines += [
            f"    -   {escape_markdown(part.statement)} **{part.verdict}** ({part.published_verdict})"
            for part in claim.parts
        ]
        yield "\n".join(lines)
        measured = [(one, one.measured) for part in claim.parts for one in part.comparisons if one.measured]
        if measured:
            rows = [
                [
                    escape_markdown(one.statement),
                    units.times(one.published),
                    units.times(ratio.estimate),
                    f"{units.times(ratio.low)} to {units.times(ratio.high)}",
                    one.verdict,
                    escape_markdown(one.remark),
                ]
                for one, ratio in measured
            ]
            yield markdown_table(
                ["over 1 as claimed", "2019", "here", "95 % interval", "verdict", ""], rows, right=(1, 2, 3)
            )


def published_as_markdown(found: Sequence[PublishedComparison]) -> Iterator[str]:
    if not found:
        return
    yield "# Published for the Same Models"
    yield "Times of one batch. Where a measured row stands for a published one, it is the same program on this machine."
    if any(one.contradicts for one in found):
        yield "† The published row contradicts itself: its elapsed time or throughput means another time."
    headings = [
        "published row",
        "workload",
        "phase",
        "when and where",
        "published",
        "measured",
        "measured row",
        "faster",
    ]
    rows = [
        [
            escape_markdown(one.published.name),
            escape_markdown(one.published.workload),
            one.published.phase,
            escape_markdown(one.published.when_and_where),
            units.seconds(one.published.wall_s) + ("†" if one.contradicts else ""),
            units.seconds(one.measured.wall_s if one.measured else None),
            markdown_code(f"{one.measured.system} @ {one.measured.environment}") if one.measured else "",
            units.times(one.times_faster),
        ]
        for one in found
    ]
    yield markdown_table(headings, rows, right=(4, 5, 7))


def claims_as_text(claims: Sequence[Claim]) -> str:
    parts = ["Quick conclusions of seed 000 (2019, GeForce RTX 2080 Ti and a 6-core CPU), tested here on ptb-lm"]
    for claim in claims:
        lines = [wrapped(f"{claim.number}. “{claim.text}”", "", "   "), f"   {_verdicts(claim)}"]
        lines += [wrapped(f"Not measured or not verified {missing}.", "   ", "   ") for missing in _missing(claim)]
        parts.append("\n".join([*lines, *map(_part, claim.parts)]))
    return "\n\n".join(parts)


def _verdicts(one: Claim | ClaimPart) -> str:
    return f"{one.verdict} (by the seed's own tables: {one.published_verdict})"


def _missing(claim: Claim) -> list[str]:
    """`on cpu: TF Eager and TF Graph`: what would have to be measured for the claim to be judged in full."""
    labels: dict[str, list[str]] = {}
    for comparison in (one for part in claim.parts for one in part.comparisons):
        for factor in (*comparison.over, *comparison.under):
            if factor.row is None and factor.label not in labels.setdefault(factor.device, []):
                labels[factor.device].append(factor.label)
    return [f"on {device}: {listing(names)}" for device, names in labels.items() if names]


def _part(part: ClaimPart) -> str:
    """Its figures, measured and published; where nothing is measured the published ones alone."""
    lines = [wrapped(f"{part.statement}: {_verdicts(part)}", "   • ", "     ")]
    known = [one for one in part.comparisons if one.measured is not None]
    lines += [wrapped(_comparison(one), "       ", "         ") for one in known]
    rest = [one for one in part.comparisons if one.measured is None]
    if rest:
        published = ", ".join(units.times(one.published) for one in rest)
        lines.append(wrapped(f"not measured: {len(rest)} ratios, 2019 {published}", "       ", "         "))
    return "\n".join(lines)


def _comparison(one: ClaimComparison) -> str:
    assert one.measured is not None
    remark = f": {one.remark}" if one.remark else ""
    measured = f"{units.times(one.measured.estimate)} {units.span(one.measured.low, one.measured.high, 1.0)}"
    return f"{one.statement}: {measured}, 2019 {units.times(one.published)}, {one.verdict}{remark}"
