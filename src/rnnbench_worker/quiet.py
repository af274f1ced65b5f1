"""Timing on quiet processors only, where a GPU is fed by a host that others use as well.

On a rented machine every processor is slowed down by other tenants now and then, for a fraction of a second to many
seconds, each at its own times. No choice made at the start of a run lasts. So a fixed computation of a millisecond, the
pulse, is timed on the worker's processors before and after each block. A block counts only if both pulses were as long
as at full speed; otherwise it is set aside, and the worker moves to processors at full speed. What counts is decided
by the pulses alone, never by the block's own time. One exception: where the host had handed a block's work to the GPU
in a quarter of its time or less, the GPU had set the pace, however slow a processor was. A CUDA graph is such a block.

Full speed is what the fastest processors usually have, not the shortest pulse ever seen: once in a thousand times a
processor is faster by a fifth, and for minutes all of them were, while other tenants rested. Blocks at such a time are
set aside, too: a launch then would not be comparable with others. On 16 processors the second fastest was always within
2 % of the usual, while most were slow.
"""

import math
import os
import time

import numpy as np

LOOPS = 35  # about a millisecond on a current core
#: Of a block. On a host with other tenants, three quarters of all blocks of a tenth of a second met a slow processor.
BLOCK_SECONDS = 0.03
TRIES = 2  # the faster one counts: an interrupt says nothing about the processor
SURVEYS = 5  # of all processors, to find out what full speed is
FIRST_SURVEYS = 25  # where no earlier launch has
PATIENCE = 5.0  # how many times the seconds of sampling may be set aside


class QuietProcessors(object):
    """`count` processors at full speed, of those that this process may use, and the pulses around blocks that count."""

    def __init__(self, count, threshold, full_speed_s, sample_seconds):
        """`full_speed_s`: the pulse at full speed as earlier launches have found it; None: there was none."""
        self._all = sorted(os.sched_getaffinity(0))
        self._count = count
        self._threshold = threshold
        self._given = full_speed_s
        self._full_speed = full_speed_s
        self._surveyed = []  # in each survey, the slowest pulse of the `count` fastest processors
        self._patience_s = PATIENCE * sample_seconds
        self._chosen = []
        self._last = float("inf")  # the latest pulse
        self._before, self._after = [], []  # of the blocks that count
        self._paced = 0  # that count although a processor was slow
        self._blocks, self._seconds = 0, 0.0  # set aside; the seconds of the pulses are part of them
        self._is_quiet = True

    def begin(self):
        """Find out what full speed is, and move to processors that have it."""
        for _ in range(SURVEYS if self._given else FIRST_SURVEYS):
            pulses = self._settle(self._all, try_all=True)
            self._surveyed.append(sorted(pulses.values())[self._count - 1])
        if self._given is None:
            self._full_speed = self._usual()
            self._settle(self._all)

    def _settle(self, candidates, try_all=False):
        """Move to those of these processors that are nearest to full speed, or the fastest while that is not known.

        Returns the pulses of those that were tried: unless all are, no more than are needed. Trying all of 16 takes
        longer than many a processor stays fast.
        """
        start = time.perf_counter()
        pulses = {}
        for cpu in candidates:
            pulses[cpu] = self._pulse(cpu)
            if not try_all and sum(map(self._is_at_full_speed, pulses.values())) >= self._count:
                break
        self._chosen = sorted(sorted(pulses, key=lambda cpu: self._distance(pulses[cpu]))[: self._count])
        self._last = max((pulses[cpu] for cpu in self._chosen), key=self._distance)
        self._move()
        self._seconds += time.perf_counter() - start
        return pulses

    def _move_away(self):
        """To processors at full speed: those that come after the ones it is on are tried first."""
        after = self._all.index(self._chosen[-1]) + 1
        self._settle(self._all[after:] + self._all[:after])

    def _distance(self, pulse):
        """From full speed; while that is not known, from what is infinitely fast."""
        return abs(math.log(pulse / self._full_speed)) if self._full_speed else pulse

    def _is_at_full_speed(self, pulse):
        return self._full_speed is not None and self._distance(pulse) <= math.log(1 + self._threshold)

    def block(self, runner, size, enough):
        """Seconds of the next block that counts. Where patience is at its end: None if there are enough samples
        already, or else those of any block, and then the launch was not quiet."""
        while True:
            by_device, before = runner.by_device, self._last
            took = runner.block(size)
            self._take_pulse()
            if self._is_at_full_speed(before) and self._is_at_full_speed(self._last):
                self._before.append(before)
                self._after.append(self._last)
                return took
            if runner.is_paced_by_device:
                self._paced += 1
                return took
            if self._seconds + took > self._patience_s and not enough:
                self._is_quiet = False
                return took
            runner.by_device = by_device
            self._blocks += 1
            self._seconds += took
            if self._seconds > self._patience_s:
                return None
            self._move_away()

    def fields(self):
        """Fields of the event `samples`."""
        found = {"quiet": self._is_quiet, "set_aside_blocks": self._blocks, "set_aside_s": self._seconds}
        found["device_paced_blocks"] = self._paced
        found["probe_best_s"], found["full_speed_s"] = self._full_speed, self._usual()
        if self._before:
            found["probe_before_s"] = sum(self._before) / len(self._before)
            found["probe_after_s"] = sum(self._after) / len(self._after)
        return found

    def _usual(self):
        return sorted(self._surveyed)[len(self._surveyed) // 2]

    def _take_pulse(self):
        start = time.perf_counter()
        self._last = max((self._pulse(cpu) for cpu in self._chosen), key=self._distance)
        self._move()
        self._seconds += time.perf_counter() - start

    def _pulse(self, cpu):
        os.sched_setaffinity(0, {cpu})
        return min(pulse_seconds() for _ in range(TRIES))

    def _move(self):
        """All threads of this process; one that ends meanwhile needs no processor."""
        for thread in os.listdir("/proc/self/task"):
            try:
                os.sched_setaffinity(int(thread), self._chosen)
            except OSError:
                pass


_DATA = np.linspace(0.1, 1.0, 4096)
_RESULT = np.empty_like(_DATA)


def pulse_seconds():
    """Seconds of the fixed computation, whose data fit in the first-level cache: only the processor's speed counts."""
    start = time.perf_counter()
    for _ in range(LOOPS):
        np.sin(_DATA, out=_RESULT)
        np.multiply(_DATA, _RESULT, out=_RESULT)
        np.sqrt(_RESULT, out=_RESULT)
    return time.perf_counter() - start
