"""Layers at the same time: each on a stream of its own, a range of steps behind the layer before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch

from .streams import NO_STREAM, OwnStream, captures_on, device_index, is_stepwise

#: About so many ranges, of a power of two of steps. Shorter ones overlap better, and make smaller products and more
#: work for the host, which does not matter while a user captures it all.
RANGES, RANGES_CAPTURED = 3, 6
SHORTEST, LONGEST = 8, 64

Result = TypeVar("Result")

#: By device and number: for all layers of a process, where nothing is captured here.
_streams: dict[tuple[int, int], OwnStream] = {}


def run_wavefront(
    layers: Sequence[Callable[[int, int], None]], steps: int, from_the_end: bool, device: torch.device
) -> None:
    """Call `layer(start, stop)` for all steps of all layers, each after the same range of the layer before it."""
    if len(layers) == 1 or device.type != "cuda":
        for run in layers:
            run(0, steps)
        return
    length = range_length(steps)
    ranges = [(start, min(start + length, steps)) for start in range(0, steps, length)]
    with _forked(len(layers), device) as streams:
        for start, stop in reversed(ranges) if from_the_end else ranges:
            finished = None
            for run, stream in zip(layers, streams, strict=True):
                with torch.cuda.stream(stream):
                    if finished is not None:
                        stream.wait_event(finished)
                    run(start, stop)
                    finished = torch.cuda.Event()  # type: ignore[no-untyped-call]
                    finished.record(stream)


def range_length(steps: int) -> int:
    count = RANGES_CAPTURED if is_stepwise() else RANGES
    return min(max(1 << (steps // count).bit_length() - 1, SHORTEST), LONGEST) if steps >= count else steps


def side_by_side(calls: Sequence[Callable[[], Result]], device: torch.device) -> list[Result]:
    """Results of calls that do not need each other: on a GPU, each on a stream of its own."""
    if len(calls) == 1 or device.type != "cuda":
        return [call() for call in calls]
    found = []
    with _forked(len(calls), device) as streams:
        for call, stream in zip(calls, streams, strict=True):
            with torch.cuda.stream(stream):
                found.append(call())
    return found


@contextmanager
def _forked(count: int, device: torch.device) -> Iterator[list[torch.cuda.Stream]]:
    """Streams that begin after what the current one has been given, and for which it waits at the end."""
    current = torch.cuda.current_stream(device)
    own = [_stream(device, number) for number in range(count)]
    if not all(one.is_alone for one in own):
        if captures_on() is not None:
            raise RuntimeError(NO_STREAM)
        yield [current] * count  # another's graph may use what cuBLAS has on such a stream
        return
    streams = [one.stream for one in own]
    for stream in streams:
        stream.wait_stream(current)
    try:
        yield streams
    finally:  # after an error too: a capture cannot end before all its streams have come together
        for stream in streams:
            current.wait_stream(stream)


def _stream(device: torch.device, number: int) -> OwnStream:
    if (place := captures_on()) is not None:
        return place.beside(number)  # passes that were captured in two places may be replayed at the same time
    key = (device_index(device), number)
    if key not in _streams:
        _streams[key] = OwnStream(device)
    return _streams[key]
