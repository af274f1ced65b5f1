"""The clock: blocks of batches, timed from an idle device to an idle device.

Within a block nothing waits for the device, as in a training loop. A block of one batch measures latency.
"""

import math
import time

from .quiet import BLOCK_SECONDS as QUIET_BLOCK_SECONDS

MIN_SAMPLES = 5
MAX_SAMPLES = 400
#: Latency is one batch a sample, and its spread is of interest: far more samples are kept.
MAX_LATENCY_SAMPLES = 10000
BLOCK_SECONDS = 0.1  # long compared with the clock's own cost and the wait at its end
STEADY = 0.05  # a block that is faster by more than this share shows that the program was not warm yet
QUIET_BLOCKS = 2  # so many in a row that were not faster: warm
#: A first sample slower by this factor than all later ones belongs to the warm-up: something was compiled in it.
LATE_COMPILING = 1.5
#: Of a block's time, at most this for handing all its work to the device: then the host was far ahead of it.
HOSTS_SHARE = 0.25
RESTARTS = 3  # how often sampling begins again because its first samples show that the program was not warm


class Runner(object):
    """Runs batches of one program in one phase, cycling through the batches it was given."""

    def __init__(self, program, phase, staged):
        self._program = program
        self._call = program.call_of(phase)
        self._staged = staged
        self._next = 0
        #: What the last batch returned, and how many batches have been run.
        self.handle = None
        self.batches = 0
        #: Seconds of all blocks by the device's own clock, as a check on the host's; None where it has no clock.
        self.by_device = 0.0
        self._stopwatch = program.stopwatch()
        #: Whether the device set the pace of the last block: the host had handed over all its work long before the end.
        #: Known only where calls put their work into the device's queue themselves, as marks of its clock must.
        self.is_paced_by_device = False

    @property
    def seen(self):
        """A batch that it has run many times."""
        return self._staged[:1]

    def block(self, batches, staged=None):
        """Seconds for this many batches, host-to-device copies and the final wait included.

        `staged`: other batches than those of the runner, each of them once.
        """
        feed, call, count = self._program.feed, self._call, len(self._staged)
        position = self._next
        if staged is None:
            staged = self._staged
            self._next = (position + batches) % count
        else:
            position, count = 0, batches
        handle, watch = None, self._stopwatch
        start = time.perf_counter()
        # What the last block returned is given up on the clock, as in a loop: freeing 256 MB takes 35 ms.
        self.handle = None
        if watch:
            watch.start()
        for _ in range(batches):
            handle = call(feed(staged[position]))
            position = position + 1 if position + 1 < count else 0
        if watch:
            watch.stop()
        handed_over = time.perf_counter() - start
        self._program.sync(handle)
        seconds = time.perf_counter() - start
        self.is_paced_by_device = watch is not None and handed_over <= HOSTS_SHARE * seconds
        self.by_device = self.by_device + watch.seconds() if watch else None
        self.handle = handle
        self.batches += batches
        return seconds


class Budget(object):
    """The time that is left to a launch. Warming up must not use what sampling needs."""

    def __init__(self, seconds):
        self._end = time.perf_counter() + seconds

    def allows(self, seconds):
        return time.perf_counter() + seconds <= self._end


#: Batches that are still to come after the warm-up: the samples, and the checks after them.
BATCHES_TO_COME = MIN_SAMPLES + 6


class WarmUp(object):
    """How a warm-up went: batches, seconds, seconds per batch at its end, and whether that had stopped falling."""

    def __init__(self, batches, seconds, per_batch, steady):
        self.batches, self.seconds, self.per_batch, self.steady = batches, seconds, per_batch, steady


def warm_up(runner, method, budget, earlier=(), again=False):
    """Run until the time per batch no longer falls, however long that takes within the budget.

    What compiles late (TorchScript in its second to fifth call) gets faster in leaps; noise goes up and down. So the
    program is warm after two blocks in a row that were not faster than the fastest level before them.

    `earlier`: seconds of single batches that were run after the first call. `again`: the program was warm before and
    then waited for its turn, so one block is enough if it is slow.
    """
    if method["protocol"] in FIXED:
        batches = FIXED[method["protocol"]][0]
        seconds = runner.block(batches - len(earlier)) + sum(earlier)
        return WarmUp(batches, seconds, seconds / batches, None)
    batches, seconds, size, level, quiet = 0, 0.0, 1, float("inf"), 0
    waiting = list(earlier)
    while True:
        took = waiting.pop(0) if waiting else runner.block(size)
        batches, seconds, per_batch = batches + size, seconds + took, took / size
        # The level stays where the last leap ended, so that many small gains add up to a leap as well.
        quiet, level = (0, per_batch) if per_batch < level * (1 - STEADY) else (quiet + 1, level)
        if waiting:
            continue
        if quiet >= QUIET_BLOCKS or (again and seconds >= method["warm_seconds"]):
            return WarmUp(batches, seconds, per_batch, True)
        if not budget.allows(per_batch * (BATCHES_TO_COME + 1)):
            return WarmUp(batches, seconds, per_batch, False)
        size = block_size(per_batch)


#: Discarded batches, blocks, batches per block: as in Braun's benchmarks (2018, github.com/stefbraun/rnn_benchmarks)
#: and in the tables of 2019 that compare TensorFlow 2.0 alpha with PyTorch 1.3.
FIXED = {"2018": (100, 20, 20), "2019": (10, 10, 5)}


def sample(runner, method, per_batch, quiet=None):
    """The measurement: a list of (batches, seconds), one for each block.

    `quiet` decides which blocks count, where the host is shared (`quiet.py`).
    """
    latency = method["timing"] == "latency"
    if method["protocol"] in FIXED:
        _, blocks, size = FIXED[method["protocol"]]
        if latency:
            blocks, size = blocks * size, 1
        return [(size, runner.block(size)) for _ in range(blocks)]
    size = 1 if latency else block_size(per_batch, QUIET_BLOCK_SECONDS if quiet else BLOCK_SECONDS)
    least = MIN_SAMPLES * BLOCK_SECONDS if quiet else 0.0
    samples, spread = [], Spread()
    while len(samples) < (MAX_LATENCY_SAMPLES if latency else MAX_SAMPLES):
        enough = len(samples) >= MIN_SAMPLES
        took = quiet.block(runner, size, enough) if quiet else runner.block(size)
        if took is None:
            break
        samples.append((size, took))
        spread.add(took)
        if len(samples) >= MIN_SAMPLES:
            if spread.total >= method["sample_seconds"]:
                break
            # At least as long as the usual blocks take, where those that count are shorter.
            if spread.total >= least and spread.half_width() <= method["precision_target"]:
                break
    return samples


def still_falling(samples):
    """Whether the first samples show that the program was not warm: one or two of them are above all later ones."""
    times = [seconds / size for size, seconds in samples]
    return times[0] > LATE_COMPILING * max(times[1:]) or min(times[:2]) > (1 + 2 * STEADY) * max(times[2:])


def block_size(per_batch, seconds=BLOCK_SECONDS):
    """How many batches fill a block."""
    return max(1, int(math.ceil(seconds / max(per_batch, 1e-9))))


class Spread(object):
    """The spread of values that come one by one: a latency run has thousands, so it is never computed anew."""

    def __init__(self):
        self.total = 0.0
        self._count, self._mean, self._squares = 0, 0.0, 0.0

    def add(self, value):
        self.total += value
        self._count += 1
        difference = value - self._mean
        self._mean += difference / self._count
        self._squares += difference * (value - self._mean)

    def half_width(self):
        """Half of the 95 % confidence interval of the mean, relative to the mean."""
        deviation = math.sqrt(self._squares / (self._count - 1))
        return student_95(self._count - 1) * deviation / math.sqrt(self._count) / self._mean


def student_95(freedom):
    """The two-sided 95 % quantile of Student's t, by its expansion around the normal one (4 degrees and more)."""
    z = 1.959964
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
