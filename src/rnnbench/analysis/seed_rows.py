"""Finding the measured rows that stand for entries of the seed's tables, through the labels in the manifests."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from rnnbench.analysis.best import is_verified
from rnnbench.analysis.conclusions import Time
from rnnbench.analysis.names import Group
from rnnbench.analysis.rows import Measured
from rnnbench.domain.system import version_key
from rnnbench.published import find_published
from rnnbench.store.folder import Contents

WORKLOAD = "ptb-lm"
PRECISION = "fp32"

Picked = dict[Time, tuple[Group, Measured]]


class SeedRows:
    """The verified rows with a seed's label, by workload and run."""

    def __init__(self, runs: Sequence[Contents], rows: Sequence[Sequence[Measured]]) -> None:
        self._rows: dict[tuple[str, int], dict[tuple[str, str, str], Measured]] = {}
        for number, (contents, measured) in enumerate(zip(runs, rows, strict=True)):
            named = [one for one in measured if one.row.seed_label and _can_stand(contents, one)]
            environments = contents.run.environments
            # In order of version: where a label is there in several, the newest one stands.
            for one in sorted(named, key=lambda one: version_key(environments[one.row.environment].version)):
                key = (_plain(one.row.seed_label), one.row.phase, one.row.device)
                self._rows.setdefault((one.row.workload, number), {})[key] = one

    def pick(self, times: Iterable[Time]) -> Picked:
        """As many of these times as can be had of one workload, those on one device from one run.

        Two machines must not meet within a device: the quotient would compare the machines.
        """
        wanted = list(times)
        # The seed's own sizes before any others.
        names = sorted({workload for workload, _ in self._rows}, key=lambda name: (name != WORKLOAD, name))
        return max((self._of_workload(name, wanted) for name in names), key=len, default={})

    def _of_workload(self, name: str, times: list[Time]) -> Picked:
        runs = [run for workload, run in self._rows if workload == name]
        picked: Picked = {}
        for device in {time.device for time in times}:
            here = [time for time in times if time.device == device]
            most: Picked = max((self._of_run(name, run, here) for run in runs), key=len)
            picked |= most
        return picked

    def _of_run(self, name: str, run: int, times: list[Time]) -> Picked:
        rows = self._rows[name, run]
        found = {time: rows.get((_plain(time.seed_label), time.phase, time.device)) for time in times}
        return {time: (Group(run, *one.row.group), one) for time, one in found.items() if one is not None}


@lru_cache
def published_seconds(time: Time) -> float | None:
    """The entry itself, from the seed the conclusions are of."""
    for row in find_published(WORKLOAD, time.phase, time.device, time.seed_label):
        if row.source == "seed-000":
            return row.wall_s
    return None


def _can_stand(contents: Contents, one: Measured) -> bool:
    workload = contents.run.workloads[one.row.workload]
    return is_verified(one.row) and one.row.precision == PRECISION and workload.id == WORKLOAD


def _plain(label: str) -> str:
    """The seed writes `TF-Graph` in one table and `TF Graph` in the others."""
    return label.casefold().replace("tf-", "tf ")
