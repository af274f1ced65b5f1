"""Streams that nothing else has, and captures on them.

What cuBLAS needs beside its numbers lies in memory that belongs to a stream, in a graph too, wherever that is replayed.
Two graphs that were captured on one stream and are replayed on two would write into the same memory; and in newer
versions the end of one graph takes that memory from the others of its stream (PyTorch issue 193402). So a stream of
captures belongs to a plan and to the stream on which its graphs are replayed, and the graphs of a plan end together.

PyTorch has 32 streams and hands them out in turn, to users as well. These are made by the driver.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from . import private

NO_STREAM = "the driver has made no stream"
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: it does not wait for the default stream, as a stream of captures must not
_NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT: this thread has asked nothing of the device yet


class OwnStream:
    """A stream that nothing else has. Where none could be made it is one of PyTorch's: not to be captured on."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._beside: dict[int, OwnStream] = {}
        unused = _unused[device_index(device)]
        try:
            handle: int | None = unused.pop()
        except IndexError:
            handle = made_by_driver(device)
        self.is_alone = handle is not None
        if handle is None:
            self.stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        else:
            self.stream = torch.cuda.ExternalStream(handle, device)  # type: ignore[no-untyped-call]
            # Given to the next: what cuBLAS has on it, 32 MB on an H200, stays as long as the process.
            weakref.finalize(self, unused.append, handle).atexit = False

    def beside(self, number: int) -> OwnStream:
        """For a layer that runs at the same time, in what is captured on this stream."""
        if number not in self._beside:
            self._beside[number] = OwnStream(self._device)
        return self._beside[number]


def device_index(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index


#: By device: the handles of streams whose holders are gone.
_unused: dict[int, list[int]] = defaultdict(list)


def made_by_driver(device: torch.device) -> int | None:
    """The handle of a new stream; None where it fails."""
    create = _driver()
    if create is None:
        return None
    handle = ctypes.c_void_p()
    with torch.cuda.device(device):
        failed = create(ctypes.byref(handle), _NON_BLOCKING)
        if failed == _NO_CONTEXT:
            torch.cuda.mem_get_info()  # whatever asks the device makes PyTorch's context this thread's
            failed = create(ctypes.byref(handle), _NON_BLOCKING)
    return None if failed else handle.value


@cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1").cuStreamCreate
    except (OSError, AttributeError):  # AMD's GPUs have another
        return None


class _Now(threading.local):
    """What this thread does."""

    is_stepwise = False
    captures_on: OwnStream | None = None


_now = _Now()
_one_at_a_time = threading.Lock()


@contextmanager
def captured_on(graph: torch.cuda.CUDAGraph, place: OwnStream, pool: Any) -> Iterator[None]:
    """What is done within becomes a graph in the memory of this pool.

    One at a time: captures share Python's collector of garbage.
    """
    stream = place.stream
    with _one_at_a_time:
        collects, before = gc.isenabled(), _now.captures_on
        _now.captures_on = place
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
            _now.captures_on = before
            if collects:
                gc.enable()


def captures_on() -> OwnStream | None:
    """Where this thread captures now; None: it captures nothing here."""
    return _now.captures_on


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
