"""A case in one of two runs that are compared: its times, or why there are none to compare."""

from typing import NamedTuple

from rnnbench.analysis.pairs import Entry
from rnnbench.domain.case import Case, LeftOut
from rnnbench.domain.result import Launch, Status


class Side(NamedTuple):
    """A case in one of the runs, as far as comparing needs it."""

    case: Case
    status: Status
    unusable: str  # why it has no time that could be compared; empty when it has
    launches: tuple[Launch, ...]
    times: list[tuple[int, float]]  # batches and seconds of each launch
    noisy: bool

    @property
    def wall_s(self) -> float | None:
        if not self.times:
            return None
        return sum(seconds for _, seconds in self.times) / sum(batches for batches, _ in self.times)

    def samples(self) -> list[float]:
        """Seconds a batch in every block of the first launch."""
        return [sample.seconds / sample.batches for sample in self.launches[0].samples]


def make_side(entry: Entry, name: str) -> Side:
    if isinstance(entry, LeftOut):
        return Side(entry.case, "unsupported", f"unsupported in {name}: {entry.reason}", (), [], False)
    status, reason = entry.judgement
    if not entry.measured:
        why = f"{status} in {name}: {reason}" if entry.launches else f"{reason} in {name}"
        return Side(entry.case, status, why, (), [], False)
    return Side(
        case=entry.case,
        status=status,
        unusable=f"wrong in {name}: {reason}" if status == "wrong" else "",
        launches=entry.launches,
        times=[(launch.batches, launch.seconds) for launch in entry.launches],
        noisy=any(launch.noisy for launch in entry.launches),
    )
