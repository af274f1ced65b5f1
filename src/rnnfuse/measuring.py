"""How long something takes on a GPU: its own time, without the host's part, which other work can hide."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from .streams import OwnStream, captured_on

ROUNDS = 5


def microseconds_captured(call: Callable[[], Any], place: OwnStream) -> float:
    """Of a call, which is captured on a stream of its own."""
    stream = place.stream
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
        graph = torch.cuda.CUDAGraph()
        with captured_on(graph, place, torch.cuda.graph_pool_handle()):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    return microseconds(graph.replay)


@cache
def processors(device: torch.device) -> int:
    """So many a GPU has. Elsewhere, in Triton's interpreter, programs run one after the other."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count) if device.type == "cuda" else 1


def microseconds(call: Callable[[], Any]) -> float:
    call()
    times = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(float(begin.elapsed_time(end)) * 1e3)
    return float(statistics.median(times))
