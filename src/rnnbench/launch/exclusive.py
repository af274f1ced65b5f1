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
    """Grants workers the machine, one at a time. With `ahead` of one, each worker has it from its start to its end."""

    def __init__(self, ahead: int = 1) -> None:
        self.ahead = ahead
        self.lock = threading.Lock()  # held by the worker that is timed, or by one that is being started
        self.running: set[Turn] = set()

    def next(self) -> "Turn":
        return Turn(self)


class Turn:
    """One worker's use of the machine: entered before its process is started, left after the process has ended."""

    def __init__(self, machine: ExclusiveMachine) -> None:
        self.probe_before_s: float | None = None  # None until this worker has the machine
        self.probe_after_s: float | None = None
        self.descriptor: int | None = None  # inherited by the worker, which reads from this pipe when it is warm
        self._grant_descriptor: int | None = None  # the writing end of that pipe
        self._machine = machine
        self._has_machine = False
        self._process: psutil.Process | None = None
        self._suspended_since: float | None = None
        self._suspended_s = 0.0  # of earlier suspensions

    def __enter__(self) -> "Turn":
        """Wait until no worker is being timed: only then may another one start."""
        self._machine.lock.acquire()
        if self._machine.ahead > 1:  # the worker gets the machine when it is warm, not when it starts
            self.descriptor, self._grant_descriptor = os.pipe()
        else:
            self._take_machine()
        return self

    def started(self, pid: int) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended already
            self._process = psutil.Process(pid)
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
        self._machine.running.add(self)
        if not self._has_machine:
            self._machine.lock.release()

    def warm(self) -> None:
        """The worker is ready to be sampled: suspend the others, then let it continue."""
        if self._grant_descriptor is None:
            return
        waiting_since = time.monotonic()
        self._machine.lock.acquire()
        for other in self._machine.running - {self}:
            other.suspend()
        self._take_machine()
        self._suspended_s += time.monotonic() - waiting_since
        with contextlib.suppress(BrokenPipeError):  # it died while it waited
            os.write(self._grant_descriptor, b"!")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The worker has ended, or could not be started."""
        was_started = self in self._machine.running
        self._machine.running.discard(self)
        for descriptor in (self.descriptor, self._grant_descriptor):
            if descriptor is not None:
                os.close(descriptor)
        if self._has_machine:
            self.probe_after_s = probe_seconds()
            for other in set(self._machine.running):
                other.resume()
        if self._has_machine or not was_started:  # in both cases this turn still holds the lock
            self._machine.lock.release()

    def suspended_seconds(self) -> float:
        """Seconds in which the worker was suspended or waited. They do not count against its time limit."""
        now = time.monotonic()
        return self._suspended_s + (now - since if (since := self._suspended_since) is not None else 0.0)

    def suspend(self) -> None:
        self._suspended_since = time.monotonic()
        for process in self._process_tree():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()

    def resume(self) -> None:
        if (since := self._suspended_since) is not None:
            self._suspended_s += time.monotonic() - since
            self._suspended_since = None
            for process in self._process_tree():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()

    def _process_tree(self) -> Iterator[psutil.Process]:
        """The worker and its descendants. A signal to its session could miss a compiler that started its own."""
        if self._process is not None:
            yield self._process
            with contextlib.suppress(psutil.NoSuchProcess):
                yield from self._process.children(recursive=True)

    def _take_machine(self) -> None:
        self._has_machine = True
        self.probe_before_s = probe_seconds()


_SLICES = 60
_LOOPS_PER_SLICE = 100


def probe_seconds() -> float:
    """Seconds of a fixed computation, about 3 ms on a current core, repeated for about 0.2 s.

    The lower quartile is returned: it ignores short bursts of other work and shows a lasting load. The data fit in
    the first-level cache and nothing is allocated, so that only the processor's speed is measured.
    """
    data = np.linspace(0.1, 1.0, 4096)
    result = np.empty_like(data)
    times = np.empty(_SLICES)
    for index in range(_SLICES):
        start = time.perf_counter()
        for _ in range(_LOOPS_PER_SLICE):
            np.sin(data, out=result)
            np.multiply(data, result, out=result)
            np.sqrt(result, out=result)
        times[index] = time.perf_counter() - start
    return float(np.quantile(times, 0.25))
