"""The clock: blocks of batches, timed from an idle device to an idle device.

Within a block nothing waits for the device, as in a training loop. A block of one batch measures latency.
"""

import math
import time

import numpy as np

MIN_SAMPLES = 5
MAX_SAMPLES = 400
BLOCK_SECONDS = 0.1  # long compared with the clock's own cost and the wait at its end
STEADY = 0.05  # the relative spread of three blocks that counts as steady


class Runner(object):
    """Runs batches of one program in one phase, cycling through the batches it was given."""

    def __init__(self, program, phase, staged):
        self._program = program
        self._call = program.call_of(phase)
        self._staged = staged
        self._next = 0
        #: Seconds of all blocks by the device's own clock, as a check on the host's; None where it has no clock.
        self.by_device = 0.0
        self._stopwatch = program.stopwatch()

    def block(self, batches):
        """Seconds for this many batches, host-to-device copies and the final wait included."""
        feed, call, staged, count = self._program.feed, self._call, self._staged, len(self._staged)
        position = self._next
        self._next = (position + batches) % count
        handle, watch = None, self._stopwatch
        start = time.perf_counter()
        if watch:
            watch.start()
        for _ in range(batches):
            handle = call(feed(staged[position]))
            position = position + 1 if position + 1 < count else 0
        if watch:
            watch.stop()
        self._program.sync(handle)
        seconds = time.perf_counter() - start
        self.by_device = self.by_device + watch.seconds() if watch else None
        return seconds


def warm_up(runner, method, again=False):
    """Run until the time per batch is steady. Returns (batches, seconds, seconds per batch).

    `again`: the program was warm before and then waited for its turn.
    """
    if method["protocol"] in FIXED:
        batches = FIXED[method["protocol"]][0]
        seconds = runner.block(batches)
        return batches, seconds, seconds / batches
    batches, seconds, size, recent = 0, 0.0, 1, []
    while True:
        took = runner.block(size)
        batches, seconds = batches + size, seconds + took
        recent = recent[-2:] + [took / size]
        size = block_size(took / size)
        spent = seconds >= method["warm_seconds"]
        if len(recent) < 3 and not (again and spent):
            continue  # TorchScript, for one, still compiles in its second and third call
        if spent or max(recent) <= min(recent) * (1 + STEADY):
            break
    return batches, seconds, recent[-1]


#: Discarded batches, blocks, batches per block: as in Braun's benchmarks (2018, github.com/stefbraun/rnn_benchmarks)
#: and in the tables of 2019 that compare TensorFlow 2.0 alpha with PyTorch 1.3.
FIXED = {"2018": (100, 20, 20), "2019": (10, 10, 5)}


def sample(runner, method, per_batch):
    """The measurement: a list of (batches, seconds), one for each block."""
    latency = method["timing"] == "latency"
    if method["protocol"] in FIXED:
        _, blocks, size = FIXED[method["protocol"]]
        if latency:
            blocks, size = blocks * size, 1
        return [(size, runner.block(size)) for _ in range(blocks)]
    size = 1 if latency else block_size(per_batch)
    samples, spent = [], 0.0
    while len(samples) < MAX_SAMPLES:
        took = runner.block(size)
        samples.append((size, took))
        spent += took
        if len(samples) >= MIN_SAMPLES:
            if spent >= method["sample_seconds"]:
                break
            if half_width([seconds for _, seconds in samples]) <= method["precision_target"]:
                break
    return samples


def block_size(per_batch):
    """How many batches fill a block."""
    return max(1, int(math.ceil(BLOCK_SECONDS / max(per_batch, 1e-9))))


def half_width(values):
    """Half of the 95 % confidence interval of the mean, relative to the mean."""
    count = len(values)
    mean = float(np.mean(values))
    return student_95(count - 1) * float(np.std(values, ddof=1)) / math.sqrt(count) / mean


def student_95(freedom):
    """The two-sided 95 % quantile of Student's t, by its expansion around the normal one (4 degrees and more)."""
    z = 1.959964
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
