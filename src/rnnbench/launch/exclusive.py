"""Turns: several workers may import and compile at once, but each is timed alone, all others standing still.

A network that takes a minute to compile is sampled in a second. With one worker at a time the machine
compiles most of the time, on one core. With `ahead` workers it compiles on several; when one of them is
warm the others are stopped (SIGSTOP), so that it has the machine to itself, and go on when it has ended.
"""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from types import TracebackType

import numpy as np


class ExclusiveMachine:
    """Who has the machine to itself. With `ahead` of one every worker has it from its start to its end."""

    def __init__(self, ahead: int = 1) -> None:
        self.ahead = ahead
        self.floor = threading.Lock()
        self.present: set[Turn] = set()

    def next(self) -> "Turn":
        return Turn(self)


class Turn:
    """One worker's: it begins before the process is started and ends after it is gone."""

    def __init__(self, turns: ExclusiveMachine) -> None:
        self.before: float | None = None  # the probe, when the machine has become ours
        self.after: float | None = None
        self.late = turns.ahead > 1  # taken only when the worker is warm, not when it starts
        self.descriptor: int | None = None  # of the pipe the worker waits at, to be handed over to it
        self._grant: int | None = None
        self._turns = turns
        self._mine = False
        self._process = 0
        self._stopped_since: float | None = None
        self._stood_still = 0.0

    def __enter__(self) -> "Turn":
        """Before the worker is started: nobody starts one while another is being timed."""
        self._turns.floor.acquire()
        if self.late:
            self.descriptor, self._grant = os.pipe()
        else:
            self._take()
        return self

    def started(self, process: int) -> None:
        self._process = process
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
        self._turns.present.add(self)
        if not self._mine:
            self._turns.floor.release()

    def warm(self) -> None:
        """The worker waits to be sampled: let it go on when the machine is quiet."""
        if self._grant is None:
            return
        asked = time.monotonic()
        self._turns.floor.acquire()
        for other in self._turns.present - {self}:
            other.stop()
        self._take()
        self._stood_still += time.monotonic() - asked
        with contextlib.suppress(BrokenPipeError):  # it has died while it waited
            os.write(self._grant, b"!")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The worker is gone, if it was ever started."""
        self._turns.present.discard(self)
        for descriptor in (self.descriptor, self._grant):
            if descriptor is not None:
                os.close(descriptor)
        if self._mine:
            self.after = probe_seconds()
            for other in set(self._turns.present):
                other.go_on()
        if self._mine or not self._process:  # it holds the floor, or could not be started
            self._turns.floor.release()

    def stood_still(self) -> float:
        """Seconds that do not count against the worker's time limit."""
        now = time.monotonic()
        return self._stood_still + (now - since if (since := self._stopped_since) is not None else 0.0)

    def stop(self) -> None:
        self._stopped_since = time.monotonic()
        _signal_family(self._process, signal.SIGSTOP)

    def go_on(self) -> None:
        if (since := self._stopped_since) is not None:
            self._stood_still += time.monotonic() - since
            self._stopped_since = None
            _signal_family(self._process, signal.SIGCONT)

    def _take(self) -> None:
        self._mine = True
        self.before = probe_seconds()


def _signal_family(process: int, number: signal.Signals) -> None:
    """A worker and all it has started: compilers may have moved to a session of their own."""
    for one in (process, *_descendants(process)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, number)


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    for listing in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(word) for word in listing.read_text().split()]
        except OSError:  # it has ended since
            continue
        for child in children:
            found += [child, *_descendants(child)]
    return found


_SLICES = 60
_LOOPS = 100


def probe_seconds() -> float:
    """A fixed piece of arithmetic, about 3 ms on a current core, timed for about 0.2 s.

    The lower quartile: short bursts of other work pass, a neighbour that stays is seen. It works in
    the first-level cache and allocates nothing, so that only the processor's time is measured.
    """
    data = np.linspace(0.1, 1.0, 4096)
    result = np.empty_like(data)
    times = np.empty(_SLICES)
    for index in range(_SLICES):
        start = time.perf_counter()
        for _ in range(_LOOPS):
            np.sin(data, out=result)
            np.multiply(data, result, out=result)
            np.sqrt(result, out=result)
        times[index] = time.perf_counter() - start
    return float(np.quantile(times, 0.25))
