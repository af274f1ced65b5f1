"""The events of a run in words. Where they are shown (a terminal, a notebook) is up to the class that draws them.

There is one line in place, with what is being done or was just measured. Only what a reader must not miss stays as a
line of its own: what failed, what is wrong, what was noisy, warnings. The line is drawn when something happens, never
on a timer, because the driver must sleep while a worker measures.
"""

import time

import msgspec

from rnnbench import units
from rnnbench.analysis.profile_results import find_bottleneck
from rnnbench.domain.ability import Entry
from rnnbench.domain.case import Case
from rnnbench.domain.profile import Profile, ProfileRecord
from rnnbench.domain.result import Launch, Limit, Verification
from rnnbench.launch.listener import Listener


class Narrator(Listener):
    """Says what happens. A subclass has `note`, `_draw` and `_keep`, which show it."""

    def __init__(self) -> None:
        self._total = 0
        self._done = 0
        self._start = time.monotonic()

    def _draw(self, text: str | None) -> None:
        """Draw the line in place, with this text or, if None, as it is but for `_done` of `_total`."""
        raise NotImplementedError

    def _keep(self, text: str, outcome: str) -> None:
        """Add a line that stays."""
        raise NotImplementedError

    def _can_draw(self) -> bool:
        """Whether a line can be drawn over. If not, every result stays as a line."""
        return True

    def preparing(self, text: str) -> None:
        self._show_current(text)

    def verifying(self, total: int) -> None:
        if total:
            self._begin(f"verifying {total} cases against the float64 reference")
        self._begin_step(total, "verifying against the float64 reference")

    def verified(self, verification: Verification) -> None:
        case, worst = verification.case, verification.worst
        detail = verification.reason or (f"largest error {worst}" if worst else "")
        cached = ", from the cache" if verification.cached else ""
        name = _case_name(msgspec.structs.replace(case, workload=case.without_sizes))
        self._print_result(verification.verdict, f"{verification.verdict:8} {name}: {detail}{cached}")

    def measuring_limits(self, total: int) -> None:
        if total:
            self._begin("measuring the machine's limit: matrix products and copies")
        self._begin_step(total, "measuring the machine's limit")

    def limit_measured(self, limit: Limit) -> None:
        name = f"{limit.environment} {limit.device} {limit.precision}"
        if limit.outcome != "ok" or not limit.products:
            what = f"{limit.outcome}: {limit.reason}" if limit.outcome != "ok" else limit.reason
        else:
            what = f"{units.rate(limit.flops_per_s, 'FLOP')}, {units.rate(limit.bytes_per_s, 'B')}"
            what += ", noisy" if limit.noisy else ""
        self._print_result(limit.outcome, f"{name}: {what}", remarkable=limit.noisy)

    def timing(self, total: int) -> None:
        self._begin(f"timing: {total} launches")
        self._begin_step(total, "")

    def launching(self, case: Case, round_number: int) -> None:
        self._show_current(f"{_short_name(case)}: starting")

    def stage(self, case: Case, stage: str) -> None:
        self._show_current(f"{_short_name(case)}: {stage}")

    def launched(self, launch: Launch) -> None:
        if launch.outcome == "ok":
            wall = launch.seconds / launch.batches
            what = f"{units.seconds(wall)} a batch, first call {units.seconds(launch.first_call_s)}"
            what += ", noisy" if launch.noisy else ""
        else:
            what = f"{launch.outcome}: {launch.reason}"
        self._print_result(launch.outcome, f"{_case_name(launch.case)}: {what}", remarkable=launch.noisy)

    def profiling(self, total: int) -> None:
        if total:
            self._begin(f"profiling: {total} launches, none of them a measurement")
        self._begin_step(total, "")

    def profiled(self, record: ProfileRecord) -> None:
        if record.outcome != "ok":
            what = f"{'no profiler' if record.outcome == 'none' else record.outcome}: {record.reason}"
        elif isinstance(record, Profile):
            what = str(find_bottleneck(record))
        else:
            changes = {"batch": "new batch size", "steps": "new length"}
            costs = (f"{changes[one.change]} {units.seconds(one.cost_s)}, {one.outcome}" for one in record.reshapes)
            what = "; ".join(costs)
        self._print_result(record.outcome, f"{_case_name(record.case)}: {what}")

    def trying_abilities(self, total: int) -> None:
        if total:
            self._begin(f"trying {total} abilities of systems")
        self._begin_step(total, "trying abilities")

    def trying(self, case: Case, ability: str) -> None:
        self._show_current(f"{case.system}: {ability}")

    def ability_tried(self, entry: Entry) -> None:
        text = f"{entry.system} @ {entry.environment} {entry.device}: {entry.ability}: {entry.verdict}"
        text += f", {entry.reason}" if entry.reason else ""
        # That something cannot be done is a result like any other, and stands in the table.
        self._print_result(entry.verdict if entry.verdict in ("wrong", "failed") else "ok", text)

    def _begin(self, text: str) -> None:
        """Name a step, where no line in place will."""
        if not self._can_draw():
            self.note(text)

    def _begin_step(self, total: int, text: str) -> None:
        self._total, self._done, self._start = total, 0, time.monotonic()
        self._draw(text)

    def _print_result(self, outcome: str, text: str, remarkable: bool = False) -> None:
        self._done += 1
        # Noisy launches are repeated, so there can be more results than expected.
        self._total = max(self._total, self._done)
        if remarkable or not self._can_draw() or outcome not in ("ok", "verified"):
            self._keep(text, outcome)
            self._draw(None)
        else:
            self._draw(text)

    def _show_current(self, text: str) -> None:
        self._draw(text)

    def _time_left(self) -> str:
        left = self._total - self._done
        if left <= 0 or self._done < 3:
            return ""
        seconds_each = (time.monotonic() - self._start) / self._done
        return f"  ({units.duration(seconds_each * left)} left)"


def _case_name(case: Case) -> str:
    return f"{case.system} @ {case.environment} {case.workload} {case.phase} {case.device} {case.precision}"


def _short_name(case: Case) -> str:
    """Enough to know where a run is."""
    return f"{case.system} {case.phase} {case.workload}"
