"""What `rnnbench audit` prints."""

from collections.abc import Iterator, Sequence

from rnnbench.analysis.audit import Audit, Suspect


def as_text(audits: Sequence[Audit], tolerance: float) -> str:
    return "\n\n".join("\n".join(_table(audit, tolerance)) for audit in audits)


def as_fields(audit: Audit) -> dict[str, object]:
    """For JSON."""
    return {
        "table": audit.table,
        "checked": audit.checked,
        "blank": audit.blank,
        "unknown": audit.unknown,
        "suspects": [
            {
                "line": suspect.line.number,
                "name": suspect.line.name,
                "wall_s": suspect.line.wall.value if suspect.line.wall else None,
                "batches": suspect.line.batches,
                "batch": suspect.line.batch,
                "contradictions": [
                    {"figure": one.figure, "printed": one.printed, "expected": one.expected, "off": one.off}
                    for one in suspect.contradictions
                ],
                "remarks": suspect.remarks,
            }
            for suspect in audit.suspects
        ],
    }


def _table(audit: Audit, tolerance: float) -> Iterator[str]:
    left = [
        f"{audit.blank} have only one figure or none" if audit.blank else "",
        f"{audit.unknown} do not say how many batches, or of what size (--batches, --batch)" if audit.unknown else "",
    ]
    beside = "".join(f"; {text}" for text in left if text)
    yield (
        f"{audit.table}: {audit.checked} rows checked, {len(audit.suspects)} contradict themselves "
        f"by more than {100 * tolerance:g} %{beside}"
    )
    for suspect in audit.suspects:
        yield f"  line {suspect.line.number}: {suspect.line.name}"
        yield from _suspect(suspect)


def _suspect(suspect: Suspect) -> Iterator[str]:
    line = suspect.line
    assert line.wall is not None
    for one in suspect.contradictions:
        rule = (
            f"{line.batches} × {line.wall.value:g} s = {one.expected:.4f} s"
            if one.figure == "elapsed"
            else f"{line.batch} / {line.wall.value:g} s = {one.expected:.4f}"
        )
        yield f"    {one.figure:10} {one.printed:.10g}, but {rule} ({100 * one.off:+.1f} %)"
    for remark in suspect.remarks:
        yield f"    → {remark}"
