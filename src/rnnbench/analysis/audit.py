"""Whether a table agrees with itself: elapsed = batches × wall, and throughput = batch size / wall."""

from collections.abc import Iterator, Sequence

import msgspec

from rnnbench.analysis.tables import Line

TOLERANCE = 0.02


class Contradiction(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of a row that its wall time does not allow."""

    figure: str  # `elapsed` or `throughput`
    printed: float
    expected: float

    @property
    def off(self) -> float:
        return self.printed / self.expected - 1


class Suspect(msgspec.Struct, frozen=True, kw_only=True):
    """A row that contradicts itself, and what can be said about why."""

    line: Line
    contradictions: tuple[Contradiction, ...]
    remarks: tuple[str, ...]


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """One table: how many rows could be checked, and those that contradict themselves."""

    table: str
    checked: int
    blank: int  # rows without a wall time, or with nothing beside it
    unknown: int  # rows that do not say how many batches, or of what size
    suspects: tuple[Suspect, ...]


def audit_table(table: str, lines: Sequence[Line], others: Sequence[Line], tolerance: float = TOLERANCE) -> Audit:
    """`others` are all rows that figures may have been copied from."""
    checked = blank = unknown = 0
    suspects: list[Suspect] = []
    for line in lines:
        if line.wall is None or not (line.elapsed or line.throughput):
            blank += 1
        elif not (line.elapsed and line.batches) and not (line.throughput and line.batch):
            unknown += 1
        else:
            checked += 1
            if found := tuple(_contradictions(line, tolerance)):
                remarks = tuple(_copied(line, found, others) or _odd_one_out(line, tolerance))
                suspects.append(Suspect(line=line, contradictions=found, remarks=remarks))
    return Audit(table=table, checked=checked, blank=blank, unknown=unknown, suspects=tuple(suspects))


def _contradictions(line: Line, tolerance: float) -> Iterator[Contradiction]:
    """Figures that are further off than the tolerance, whatever was rounded away in print."""
    wall = line.wall
    assert wall is not None
    if line.elapsed and line.batches:
        least, most = line.elapsed.low / (line.batches * wall.high), line.elapsed.high / (line.batches * wall.low)
        if least > 1 + tolerance or most < 1 - tolerance:
            expected = line.batches * wall.value
            yield Contradiction(figure="elapsed", printed=line.elapsed.value, expected=expected)
    if line.throughput and line.batch:
        least, most = line.throughput.low * wall.low / line.batch, line.throughput.high * wall.high / line.batch
        if least > 1 + tolerance or most < 1 - tolerance:
            expected = line.batch / wall.value
            yield Contradiction(figure="throughput", printed=line.throughput.value, expected=expected)


def _odd_one_out(line: Line, tolerance: float) -> Iterator[str]:
    """Each figure means a time per batch. Where two of the three agree, the third is out."""
    if not (line.wall and line.elapsed and line.batches and line.throughput and line.batch):
        return
    meant = {
        "wall time": line.wall.value,
        "elapsed time": line.elapsed.value / line.batches,
        "throughput": line.batch / line.throughput.value,
    }
    for name in meant:
        first, second = (value for other, value in meant.items() if other != name)
        if abs(first / second - 1) <= tolerance:
            yield f"the {name} is out: the other two agree on {first:.4g} s a batch"


def _copied(line: Line, found: Sequence[Contradiction], others: Sequence[Line]) -> list[str]:
    """Rows with the very figures that are wrong here: they may be theirs."""
    remarks: list[str] = []
    for other in others:
        theirs = {"elapsed": other.elapsed, "throughput": other.throughput}
        same = [one.figure for one in found if (figure := theirs[one.figure]) and figure.value == one.printed]
        if other is not line and same:
            remarks.append(f"the same {' and '.join(same)} as line {other.number}: {other.name}")
    return remarks
