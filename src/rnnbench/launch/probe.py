"""How fast the workers' processors are now: a fixed computation, timed on each of them.

A load that was there before and stays does not change the probe from one launch to the next. So its time is also
compared with the best of the run and with the best that is known of this machine, kept in the cache folder.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from rnnbench.domain.case import Method
from rnnbench.domain.noise import speed_changed, speed_was_low
from rnnbench.domain.system import Device
from rnnbench.files import cache_folder, write_atomically
from rnnbench.machine import describe_processor, physical_cpus

_LOOPS = 500  # about 15 ms on a current core: longer than a scheduler lets a process run while others wait
_WINDOWS = 12  # over all processors
_FEWEST_WINDOWS = 3  # on one processor
_MOST_PROCESSORS = 8


def probe_seconds(cpus: Sequence[int] = ()) -> float:
    """Seconds of a fixed computation of about 15 ms, repeated for 0.2 to 0.4 s; on the slowest of these processors.

    For each processor the lower quartile counts: it ignores short bursts of other work and shows a lasting load. The
    data fit in the first-level cache and nothing is allocated, so that only the processor's speed is measured. Of
    many processors a few are probed, always the same.
    """
    chosen: Sequence[int | None] = _a_few(cpus) if cpus else (None,)
    windows = max(_FEWEST_WINDOWS, _WINDOWS // len(chosen))
    return max(_lower_quartile(cpu, windows) for cpu in chosen)


def fastest_probe(cpus: Sequence[int]) -> float:
    """Seconds of the same computation on the fastest of these processors: what the machine can do, whoever uses it."""
    return min(_lower_quartile(cpu, _FEWEST_WINDOWS) for cpu in _a_few(cpus or physical_cpus()))


def _a_few(cpus: Sequence[int]) -> Sequence[int]:
    return cpus[:: -(-len(cpus) // _MOST_PROCESSORS)]


_PASSES = 2  # over all processors, so that one that is slow only now and then is found too


def quietest(cpus: Sequence[int], count: int) -> tuple[int, ...]:
    """The `count` processors on which the fixed computation is fastest at its slowest: the least used by others."""
    passes = [[_lower_quartile(cpu, _FEWEST_WINDOWS) for cpu in cpus] for _ in range(_PASSES)]
    slowest = {cpu: max(seconds) for cpu, *seconds in zip(cpus, *passes, strict=True)}
    return tuple(sorted(sorted(cpus, key=lambda cpu: slowest[cpu])[:count]))


def on_quiet_processors(method: Method, device: Device) -> Method:
    """The method with its workers on the quietest cores, where it leaves any cores to others.

    A worker that computes on the processors stays on those that are quietest now. One that feeds a GPU may use all
    cores, to compile, and is then timed on as many as it has threads: on those that are quiet at that moment.
    """
    cores = physical_cpus()
    if not 0 < len(method.cpus) < len(cores):
        return method
    if device == "cuda":
        return msgspec.structs.replace(method, cpus=tuple(cores), quiet_cpus=len(method.cpus))
    return msgspec.structs.replace(method, cpus=quietest(cores, len(method.cpus)))


def _lower_quartile(cpu: int | None, windows: int) -> float:
    data = np.linspace(0.1, 1.0, 4096)
    result = np.empty_like(data)
    times = np.empty(windows)
    with _pinned(cpu):
        for index in range(windows):
            start = time.perf_counter()
            for _ in range(_LOOPS):
                np.sin(data, out=result)
                np.multiply(data, result, out=result)
                np.sqrt(result, out=result)
            times[index] = time.perf_counter() - start
    return float(np.quantile(times, 0.25))


@contextlib.contextmanager
def _pinned(cpu: int | None) -> Iterator[None]:
    """Run this thread on one processor, as the workers' threads do; without, where that is not possible."""
    if cpu is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, before)


_RUNS_KEPT = 20
_KEPT_FORMAT = "15 ms"  # names the computation: times of another one cannot be compared


class BestProbe:
    """The shortest probe of this run, and of the runs before it that a file remembers."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._earlier = _read(path) if path else []
        self._of_run: float | None = None

    @classmethod
    def of_machine(cls, cpus: Sequence[int]) -> "BestProbe":
        """That of the runs on this kind of processor, with as many of them."""
        name = f"{_KEPT_FORMAT}|{describe_processor()}|{len(cpus)}"
        return cls(cache_folder() / "probes" / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json")

    def add(self, seconds: float) -> None:
        self._of_run = min(seconds, self._of_run or seconds)

    @property
    def seconds(self) -> float | None:
        """The best known; None before the first probe of the first run.

        Of the earlier runs the second best counts: one that was lucky, or that ran at a boosted clock, must not make
        all later ones look slow. Only the last twenty are kept, so that nothing is held against a machine for ever.
        """
        known = [one for one in (self._of_run, *sorted(self._earlier)[1:2]) if one is not None]
        return min(known, default=None)

    def keep(self) -> None:
        """Note this run's best for later ones. A cache that cannot be written is no reason to fail."""
        if self._path is not None and self._of_run is not None:
            runs = [*_read(self._path), self._of_run][-_RUNS_KEPT:]  # read again: other runs may have ended meanwhile
            with contextlib.suppress(OSError):
                write_atomically(self._path, msgspec.json.encode(runs))


def _read(path: Path) -> list[float]:
    try:
        runs = msgspec.json.decode(path.read_bytes(), type=list[float])
    except (OSError, msgspec.MsgspecError):
        return []
    return [one for one in runs if 0 < one < float("inf")]


class Watch:
    """Whether the machine was busy while something ran; known when it has ended."""

    was_busy: bool = False


@contextlib.contextmanager
def watched(method: Method) -> Iterator[Watch]:
    """Time the fixed computation before and after what runs inside, as a launch does that is timed."""
    watch = Watch()
    before = probe_seconds(method.cpus)
    yield watch
    after, best = probe_seconds(method.cpus), BestProbe.of_machine(method.cpus).seconds
    threshold = method.noise_threshold
    watch.was_busy = speed_was_low(before, after, best, threshold) or speed_changed(before, after, threshold)
