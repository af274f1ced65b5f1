"""What the numbers say, in Markdown: the summary of a group, the seed's claims, the published rows."""

from collections.abc import Iterator

from rnnbench.report import units
from rnnbench.report.beside import published_beside
from rnnbench.report.document import Document
from rnnbench.report.markdown_text import code, plain, table
from rnnbench.report.panel import Panel


def summary(panel: Panel) -> Iterator[str]:
    group = panel.group
    said = " ".join(one.text for one in panel.found.summary)
    if said:
        yield f"**{group.phase} · {group.device} · {group.precision}.** {plain(said)}"


def claims(document: Document) -> Iterator[str]:
    """The four quick conclusions of 2019, tested here and, beside it, on the tables they were drawn from."""
    if not document.analysis.claims:
        return
    yield "# The Quick Conclusions of 2019"
    yield "Each is tested on this report's numbers and, in brackets, on the tables it was drawn from."
    for claim in document.analysis.claims:
        lines = [f"{claim.number}.  {plain(claim.text)} **{claim.verdict}** ({claim.published_verdict})"]
        lines += [
            f"    -   {plain(part.statement)} **{part.verdict}** ({part.published_verdict})" for part in claim.parts
        ]
        yield "\n".join(lines)
        measured = [(one, one.measured) for part in claim.parts for one in part.comparisons if one.measured]
        if measured:
            rows = [
                [
                    plain(one.statement),
                    units.times(one.published),
                    units.times(ratio.estimate),
                    f"{units.times(ratio.low)} to {units.times(ratio.high)}",
                    one.verdict,
                    plain(one.remark),
                ]
                for one, ratio in measured
            ]
            yield table(["over 1 as claimed", "2019", "here", "95 % interval", "verdict", ""], rows, right=(1, 2, 3))


def published(document: Document) -> Iterator[str]:
    found = published_beside(document)
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
            plain(one.published.name),
            plain(one.published.workload),
            one.published.phase,
            plain(one.published.when_and_where),
            units.seconds(one.published.wall_s) + ("†" if one.contradicts else ""),
            units.seconds(one.measured.wall_s if one.measured else None),
            code(f"{one.measured.system} @ {one.measured.environment}") if one.measured else "",
            units.times(one.times_faster),
        ]
        for one in found
    ]
    yield table(headings, rows, right=(4, 5, 7))
