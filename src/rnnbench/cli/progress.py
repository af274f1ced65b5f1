"""Progress in the terminal: a line for each result, and on a terminal one more that says what goes on now.

It is drawn when something happens, never on a timer: the driver sleeps while a worker measures.
"""

import sys
import threading
import time

from rnnbench.domain.case import Case
from rnnbench.domain.result import Launch, Verification
from rnnbench.launch.listener import Listener
from rnnbench.report import units


class Progress(Listener):
    """Writes to standard error, so that standard output holds nothing but the result."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._lock = threading.Lock()
        self._total = 0
        self._done = 0
        self._start = time.monotonic()
        self._case: Case | None = None

    def note(self, text: str) -> None:
        self._print(text)

    def verifying(self, total: int) -> None:
        self._begin(total)
        if total:
            self._print(f"verifying {total} rows against the float64 reference")

    def verified(self, verification: Verification) -> None:
        self._done += 1
        case, worst = verification.case, verification.worst
        detail = verification.reason or (f"largest error {worst}" if worst else "")
        kept = ", known from before" if verification.cached else ""
        self._result(
            f"{verification.verdict:9} {case.system} {case.workload.partition('[')[0]} {case.phase}"
            f" {case.device} {case.precision}: {detail}{kept}"
        )

    def measuring(self, total: int) -> None:
        self._begin(total)
        self._print(f"timing: {total} launches")

    def launching(self, case: Case, round_number: int) -> None:
        self._case = case
        self._status(f"{_name(case)}: starting")

    def stage(self, case: Case, stage: str) -> None:
        self._status(f"{_name(case)}: {stage}")

    def launched(self, launch: Launch) -> None:
        self._done += 1
        if launch.outcome == "ok":
            wall = launch.seconds / launch.batches
            what = f"{units.seconds(wall)} a batch, first call {units.seconds(launch.first_call_s)}"
            what += ", noisy" if launch.noisy else ""
        else:
            what = f"{launch.outcome}: {launch.reason}"
        self._result(f"{_name(launch.case)}: {what}")

    def _begin(self, total: int) -> None:
        self._total, self._done, self._start = total, 0, time.monotonic()

    def _result(self, text: str) -> None:
        # A noisy launch is repeated, so there can be more than were counted on.
        total = max(self._total, self._done)
        self._print(f"[{self._done:{len(str(total))}}/{total}] {text}{self._remaining()}")

    def _remaining(self) -> str:
        left = self._total - self._done
        if left <= 0 or self._done < 3:
            return ""
        rate = (time.monotonic() - self._start) / self._done
        return f"  ({units.duration(rate * left)} left)"

    def _print(self, text: str) -> None:
        with self._lock:
            if self._live:
                sys.stderr.write("\r\x1b[2K")
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def _status(self, text: str) -> None:
        if self._live:
            with self._lock:
                sys.stderr.write(f"\r\x1b[2K… {text}"[: 6 + 100])
                sys.stderr.flush()


def _name(case: Case) -> str:
    return f"{case.system} {case.workload} {case.phase} {case.device} {case.precision}"
