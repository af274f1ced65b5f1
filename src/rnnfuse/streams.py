"""Streams that nothing else here has, and captures on them.

PyTorch hands out 32 in turn, and then the same again; and what cuBLAS needs beside its numbers lies in memory that
belongs to a stream, in a graph too, wherever that is replayed. Two graphs that were captured on one stream and are
replayed on two would write into the same memory; and in newer versions the end of one graph takes that memory from the
others of its stream (PyTorch issue 193402). So a stream of captures belongs to a plan and to the stream on which its
graphs are replayed, and the graphs of a plan end together.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from . import private

PYTORCHS = 32  # for a device and priority
ALL_TAKEN = "all of PyTorch's streams are taken"


class OwnStream:
    """A stream that no other of this class has. Where all are taken it is not alone, and not to be captured on."""

    def __init__(self, device: torch.device) -> None:
        self.is_alone = self._take(device) or (_collected() and self._take(device))

    def _take(self, device: torch.device) -> bool:
        for _ in range(PYTORCHS):
            self.stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            key = (self.stream.device_index, self.stream.cuda_stream)
            if key not in _taken:
                _taken[key] = self
                return True
        return False


def _collected() -> bool:
    """Layers that nobody has any more hold their streams until Python looks for them. Not now if this thread captures:
    the end of their graphs would spoil it."""
    if torch.cuda.is_current_stream_capturing():
        return False
    with _one_at_a_time:
        gc.collect()
    return True


#: Not by the streams themselves: weak references to them crash Python (PyTorch 2.11).
_taken: weakref.WeakValueDictionary[tuple[int, int], OwnStream] = weakref.WeakValueDictionary()


class _Now(threading.local):
    """What this thread does."""

    is_stepwise = False
    replayed_on: int | None = None


_now = _Now()
_one_at_a_time = threading.Lock()


@contextmanager
def captured_on(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, pool: Any) -> Iterator[None]:
    """What is done within becomes a graph in the memory of this pool, to be replayed on the stream that is current now.

    One at a time: captures share streams, and Python's collector of garbage.
    """
    with _one_at_a_time:
        collects, before = gc.isenabled(), _now.replayed_on
        _now.replayed_on = torch.cuda.current_stream(stream.device).cuda_stream
        gc.disable()  # it could end another graph meanwhile, which spoils this one
        try:
            # The stream once more, outermost: PyTorch does not set it back where the end of a capture fails.
            with (
                torch.cuda.stream(stream),
                torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"),
            ):
                yield
        except BaseException:
            private.end_failed_capture(graph, stream, pool)
            raise
        finally:
            _now.replayed_on = before
            if collects:
                gc.enable()


def replayed_on() -> int | None:
    """The stream on which what this thread captures now will be replayed; None: it captures nothing here."""
    return _now.replayed_on


@contextmanager
def stepwise() -> Iterator[None]:
    """What is done within is done as it will be captured, for the first time."""
    _now.is_stepwise = True
    try:
        yield
    finally:
        _now.is_stepwise = False


def is_stepwise() -> bool:
    """Whether each step is to be run by itself, because it is captured or will be."""
    return _now.is_stepwise or torch.cuda.is_current_stream_capturing()
