"""Exclusive use of the machine: several workers may import and compile at once, but each is timed alone.

A network that takes a minute to compile is sampled in a second. With one worker at a time, the machine compiles most of
the time, on one core. With `ahead` workers it compiles on several. When one of them is warm, the others are suspended
(SIGSTOP), so that it has the machine to itself. They resume when it has ended.
"""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from types import TracebackType

import numpy as np
import psutil


class ExclusiveMachine:
    """Which worker has the machine to itself. With `ahead` of one, every worker has it from its start to its end."""

    def __init__(self, ahead: int = 1) -> None:
        self.ahead = ahead
        self.lock = threading.Lock()  # held by the worker that is timed, or by one that is just being started
        self.present: set[Turn] = set()

    def next(self) -> "Turn":
        return Turn(self)


class Turn:
    """One worker's turn: it begins before the process is started and ends after it is gone."""

    def __init__(self, machine: ExclusiveMachine) -> None:
        self.before: float | None = None  # seconds of the probe, once the machine is ours
        self.after: float | None = None
        self.late = machine.ahead > 1  # the machine is taken only when the worker is warm, not when it starts
        self.descriptor: int | None = None  # of the pipe the worker waits at, for the worker to inherit
        self._grant: int | None = None  # the other end of that pipe
        self._machine = machine
        self._has_machine = False
        self._process: psutil.Process | None = None
        self._suspended_since: float | None = None
        self._suspended = 0.0

    def __enter__(self) -> "Turn":
        """Before the worker is started: no worker starts while another is being timed."""
        self._machine.lock.acquire()
        if self.late:
            self.descriptor, self._grant = os.pipe()
        else:
            self._take_machine()
        return self

    def started(self, process: int) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended already
            self._process = psutil.Process(process)
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
        self._machine.present.add(self)
        if not self._has_machine:
            self._machine.lock.release()

    def warm(self) -> None:
        """The worker waits to be sampled: let it continue when the machine is quiet."""
        if self._grant is None:
            return
        asked = time.monotonic()
        self._machine.lock.acquire()
        for other in self._machine.present - {self}:
            other.suspend()
        self._take_machine()
        self._suspended += time.monotonic() - asked
        with contextlib.suppress(BrokenPipeError):  # it died while it waited
            os.write(self._grant, b"!")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The worker is gone, if it was ever started."""
        was_started = self in self._machine.present
        self._machine.present.discard(self)
        for descriptor in (self.descriptor, self._grant):
            if descriptor is not None:
                os.close(descriptor)
        if self._has_machine:
            self.after = probe_seconds()
            for other in set(self._machine.present):
                other.resume()
        if self._has_machine or not was_started:  # it holds the lock still
            self._machine.lock.release()

    def suspended_seconds(self) -> float:
        """Seconds that do not count against the worker's time limit."""
        now = time.monotonic()
        return self._suspended + (now - since if (since := self._suspended_since) is not None else 0.0)

    def suspend(self) -> None:
        self._suspended_since = time.monotonic()
        for process in self._family():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()

    def resume(self) -> None:
        if (since := self._suspended_since) is not None:
            self._suspended += time.monotonic() - since
            self._suspended_since = None
            for process in self._family():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()

    def _family(self) -> Iterator[psutil.Process]:
        """The worker and all it has started: compilers may have moved to a session of their own."""
        if self._process is not None:
            yield self._process
            with contextlib.suppress(psutil.NoSuchProcess):
                yield from self._process.children(recursive=True)

    def _take_machine(self) -> None:
        self._has_machine = True
        self.before = probe_seconds()


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
