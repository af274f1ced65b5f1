"""What a run shows of its own quality: everything the checks look at, computed once."""

from functools import cached_property

import msgspec
import numpy as np

from rnnbench.analysis.rows import make_rows
from rnnbench.analysis.standing import Standing, find_standing
from rnnbench.domain.result import Launch
from rnnbench.store.folder import Contents
from rnnbench.store.run import Run


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """A row that has a time."""

    key: str
    launches: tuple[Launch, ...]
    half_width: float  # of the interval, as a share of the time

    @property
    def launches_differ(self) -> bool:
        """Whether they lie further apart than their samples explain."""
        times = [np.array([one.seconds / one.batches for one in launch.samples]) for launch in self.launches]
        if len(times) < 2:
            return False
        means = np.array([one.mean() for one in times])
        explained = np.mean([one.var(ddof=1) / len(one) if len(one) > 1 else 0.0 for one in times])
        return bool(means.var(ddof=1) > 2 * explained)


class Evidence:
    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.run: Run = contents.run
        self.all: list[Standing] = list(find_standing(contents))

    @cached_property
    def measured(self) -> list[Measurement]:
        """Rows with a time that is shown as one; a wrong row's is not."""
        rows = make_rows(self.contents)
        found = []
        for standing, row in zip(self.all, rows[: len(self.all)], strict=True):
            if row.status not in ("verified", "unverified") or row.wall_s is None:
                continue
            assert row.wall_low_s is not None
            assert row.wall_high_s is not None
            half = (row.wall_high_s - row.wall_low_s) / 2 / row.wall_s
            found.append(Measurement(key=standing.case.key, launches=standing.launches, half_width=half))
        return found

    @property
    def probes(self) -> list[float]:
        """The fixed computation's time at each launch, in the order they were made; the quieter of two."""
        return [
            min(record.probe_before_s, record.probe_after_s)
            for record in self.contents.records
            if isinstance(record, Launch) and record.probe_before_s and record.probe_after_s
        ]
