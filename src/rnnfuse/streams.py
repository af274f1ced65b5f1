"""Streams that nothing else here has.

PyTorch hands out 32 in turn, and then the same again; and what cuBLAS needs beside its numbers lies in memory that
belongs to a stream, in a graph too, wherever that is replayed. Two graphs that were captured on one stream and are
replayed on two would write into the same memory; and from PyTorch 2.11 on, the end of one graph takes that memory from
the others of its stream.
"""

from __future__ import annotations

import weakref

import torch

PYTORCHS = 32  # for a device and priority

_taken: weakref.WeakValueDictionary[tuple[int, int], torch.cuda.Stream] = weakref.WeakValueDictionary()


def own_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream that is not among those given before, as long as they are held and there are any."""
    for _ in range(PYTORCHS):
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        key = (stream.device_index, stream.cuda_stream)
        if key not in _taken:
            break
    _taken[key] = stream
    return stream
