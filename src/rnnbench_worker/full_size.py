"""What the timed program itself computes, delivered to the driver: at full size, and outside the clock.

The small version of a workload proves a system. These arrays prove the program that is timed: its first updates, and
what it does with batches that it has never seen, after it was sampled. Nothing is judged here.
"""

import os
import time

import numpy as np

from .memory import forget_peak, remember_peak


class FullSize(object):
    """Collects arrays of one program. The job says how many first updates, and which sequences' logits."""

    def __init__(self, job, program, runner, channel):
        self._updates = job["check"]["updates"]
        self._sequences = job["check"]["sequences"]
        self._training = job["phase"] == "train"
        self._folder = job["arrays"]
        self._program, self._runner, self._channel = program, runner, channel
        self._spent_s = 0.0  # on all of this, except batches that are part of the warm-up

    def first_batches(self):
        """Deliver what the first batches gave, after the first call. Returns the seconds of each further batch."""
        start, arrays, seconds = time.perf_counter(), {}, []
        remember_peak()
        self._add_result(arrays, 0)
        if self._training:
            for index in range(1, self._updates):
                seconds.append(self._runner.block(1))
                self._add_result(arrays, index)
            if self._updates:
                self._add_parameters(arrays, "after")
        self._deliver("first", arrays)
        self._spent_s += time.perf_counter() - start - sum(seconds)
        return seconds

    def unseen_batches(self, batches):
        """Run batches that the program has never seen, after its samples, and deliver what they gave."""
        start = time.perf_counter()
        # Work that was put off until its result is read, or was left to a thread, shows in the first reading.
        left_over_s = self._reading_seconds()
        remember_peak()
        # What the unseen ones are compared with: a batch that was seen, alone and after a reading, as they are.
        seen_s = self._alone()
        read_s = self._reading_seconds()  # how long it takes when nothing is left over
        arrays, seconds = {"batches": np.int64(self._runner.batches)}, []
        for index, batch in enumerate(batches):
            if self._training:
                self._add_parameters(arrays, "before/{}".format(index))
            seconds.append(self._alone([self._program.stage(batch)]))
            self._add_result(arrays, index)
        if self._training:
            self._add_parameters(arrays, "after")
        # Once more: the machine may have become busy with the first unseen batch. It comes twice, and the second time
        # counts: a program that keeps a few results may have given up this one's for the unseen ones'.
        self._alone(self._runner.seen)
        seen_s = max(seen_s, self._alone(self._runner.seen))
        self._deliver("unseen", arrays)
        self._spent_s += time.perf_counter() - start
        self._channel.send(
            "unseen",
            seconds=seconds,
            seen_s=seen_s,
            left_over_s=left_over_s,
            read_s=read_s,
            check_s=max(0.0, self._spent_s),
        )

    def _alone(self, staged=None):
        """Seconds of one batch: the next of those that were seen, or this one."""
        # JAX keeps what was read with the result. Freeing 256 MB takes 20 ms, which are not the next batch's.
        self._runner.handle = None
        return self._runner.block(1, staged)

    def _reading_seconds(self):
        start = time.perf_counter()
        self._result()
        return time.perf_counter() - start

    def _result(self):
        handle = self._runner.handle
        return self._program.loss(handle) if self._training else np.asarray(self._program.logits(handle))

    def _add_result(self, arrays, index):
        result = self._result()
        if self._training:
            arrays["loss/{}".format(index)] = np.float64(result)
            return
        arrays["shape/{}".format(index)] = np.asarray(result.shape)
        rows = [row for row in self._sequences if row < len(result)]
        arrays["logits/{}".format(index)] = result[rows]

    def _add_parameters(self, arrays, prefix):
        for name, value in self._program.parameters().items():
            arrays[prefix + "/" + name] = np.array(value)  # a copy: it may be a view of what the next update changes

    def _deliver(self, name, arrays):
        path = os.path.join(self._folder, name + ".npz")
        np.savez(path, **arrays)
        self._channel.send("arrays", name=name, path=path)
        arrays.clear()
        forget_peak()
