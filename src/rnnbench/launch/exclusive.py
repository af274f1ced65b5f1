"""Exclusive use of the machine: several workers may import and compile at once, but each is timed alone.

A network that takes a minute to compile is sampled in a second. With one worker at a time, the machine compiles most of
the time, on one core. With `ahead` workers it compiles on several. When one of them is warm, the others are suspended
(SIGSTOP), so that it has the machine to itself. They resume when it has ended.
"""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Protocol

import numpy as np

from rnnbench.launch.probe import BestProbe, probe_seconds
from rnnbench.launch.process import CREW, Crew


class Suspendable(Protocol):
    """A process that can be stopped for a while, with everything it has started."""

    def suspend(self) -> None: ...

    def resume(self) -> None: ...


class ExclusiveMachine:
    """Grants workers the machine, one at a time. With `ahead` of one, each worker has it from its start to its end.

    All that changes here changes under one lock, the crew's: who has the machine, which workers run, which are
    suspended, and whether the driver is about to end. Then waiting for the machine raises `Closed`.
    """

    def __init__(
        self, ahead: int = 1, cpus: Sequence[int] = (), best: BestProbe | None = None, crew: Crew = CREW
    ) -> None:
        self.ahead = ahead
        self.best = best or BestProbe()
        self.full_speeds: list[float] = []  # of the fixed computation, as workers on quiet processors found it
        self._cpus = cpus  # that the workers are pinned to
        self._crew = crew
        self._holder: Turn | None = None  # the worker that is timed, or one that is being started
        self._running: dict[Turn, Suspendable] = {}

    def next(self, probes: bool = True) -> "Turn":
        """The next worker's turn. `probes`: the driver times the fixed computation before and after it."""
        return Turn(self, probes)

    @property
    def full_speed_s(self) -> float | None:
        """What the workers so far have found, so that all of them have the same standard; None before the first.

        The median: for minutes all processors are slow, while other tenants are busy, or fast, while they rest.
        """
        return float(np.median(self.full_speeds)) if self.full_speeds else None

    def take(self, turn: "Turn") -> None:
        """Wait until nobody has the machine, then have it. Only then may a worker start or be timed."""
        with self._crew.lock:
            self._crew.wait_until(lambda: self._holder is None)
            self._holder = turn

    def release(self, turn: "Turn") -> None:
        """Give the machine back, if this turn has it, and let the others go on."""
        with self._crew.lock:
            if self._holder is turn:
                for other, process in self._running.items():
                    if other.is_suspended:
                        process.resume()
                        other.is_suspended = False
                        other.clock.go_on()
                self._holder = None
                self._crew.lock.notify_all()

    @contextlib.contextmanager
    def untimed(self) -> Iterator[None]:
        """For the driver's own heavy work: no worker is timed, and none is started, until it is done."""
        turn = self.next()
        self.take(turn)
        try:
            yield
        finally:
            self.release(turn)

    def add(self, turn: "Turn", process: Suspendable) -> None:
        with self._crew.lock:
            self._running[turn] = process

    def remove(self, turn: "Turn") -> None:
        """The worker has ended: it is never signalled again."""
        with self._crew.lock:
            self._running.pop(turn, None)

    def probe(self) -> float:
        """The speed of the workers' processors now. Only a turn that has the machine asks."""
        seconds = probe_seconds(self._cpus)
        self.best.add(seconds)
        return seconds

    def suspend_others(self, turn: "Turn") -> None:
        with self._crew.lock:
            for other, process in self._running.items():
                if other is not turn and not other.is_suspended:
                    other.is_suspended = True
                    other.clock.stop()
                    process.suspend()


class Clock:
    """The seconds in which a worker stood still. It may do so for two reasons at once; they count once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # its own worker's thread stops it, and the thread of the one that is timed
        self._reasons = 0
        self._since = 0.0
        self._earlier_s = 0.0

    def stop(self) -> None:
        with self._lock:
            self._reasons += 1
            if self._reasons == 1:
                self._since = time.monotonic()

    def go_on(self) -> None:
        with self._lock:
            self._reasons -= 1
            if self._reasons == 0:
                self._earlier_s += time.monotonic() - self._since

    def stopped_seconds(self) -> float:
        with self._lock:
            return self._earlier_s + (time.monotonic() - self._since if self._reasons else 0.0)


class Turn:
    """One worker's use of the machine: entered before its process is started, left after the process has ended."""

    def __init__(self, machine: ExclusiveMachine, probes: bool = True) -> None:
        self.probe_before_s: float | None = None  # None until this worker has the machine
        self.probe_after_s: float | None = None
        self.probe_best_s: float | None = None  # the best that was known when it ended
        self.descriptor: int | None = None  # inherited by the worker, which reads from this pipe when it is warm
        self.is_suspended = False  # by the machine, while another worker is timed
        self.clock = Clock()
        self._grant_descriptor: int | None = None  # the writing end of that pipe
        self._machine = machine
        self._probes = probes
        self._is_timed = False

    def __enter__(self) -> "Turn":
        """Wait until no worker is being timed: only then may another one start."""
        self._machine.take(self)
        try:
            if self._machine.ahead > 1:  # the worker gets the machine when it is warm, not when it starts
                self.descriptor, self._grant_descriptor = os.pipe()
            else:
                self._begin_timing()
        except BaseException:
            self._machine.release(self)
            raise
        return self

    def started(self, process: Suspendable) -> None:
        self._close_descriptor()
        self._machine.add(self, process)
        if not self._is_timed:
            self._machine.release(self)

    def warm(self) -> None:
        """The worker is ready to be sampled: suspend the others, then let it continue."""
        if self._is_timed or self._grant_descriptor is None:
            return
        self.clock.stop()
        try:
            self._machine.take(self)
            self._machine.suspend_others(self)
            self._begin_timing()
        finally:
            self.clock.go_on()
        with contextlib.suppress(BrokenPipeError):  # it died while it waited
            os.write(self._grant_descriptor, f"{self._machine.full_speed_s or ''}!".encode())

    def sampled(self) -> None:
        """The worker is not timed any more. Unless the machine is probed after it, others go on while it ends."""
        if self._is_timed and not self._probes and self._machine.ahead > 1:
            self._machine.release(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The worker has ended, or could not be started."""
        self._machine.remove(self)
        self._close_descriptor()
        if self._grant_descriptor is not None:
            os.close(self._grant_descriptor)
        try:
            if self._is_timed and self._probes and kind is None:
                self.probe_after_s = self._machine.probe()
                self.probe_best_s = self._machine.best.seconds
        finally:
            self._machine.release(self)

    def suspended_seconds(self) -> float:
        """Seconds in which the worker was suspended or waited. They do not count against its time limit."""
        return self.clock.stopped_seconds()

    def _begin_timing(self) -> None:
        self._is_timed = True
        if self._probes:
            self.probe_before_s = self._machine.probe()

    def _close_descriptor(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
