"""CUDA events as a stopwatch: the device's own account of a block, to check the host's clock by."""

import torch


class EventClock(object):
    def __init__(self):
        self._first, self._last = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def start(self):
        self._first.record()

    def stop(self):
        self._last.record()

    def seconds(self):
        return self._first.elapsed_time(self._last) / 1000.0
