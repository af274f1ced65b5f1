"""Streams that nothing else here has.

PyTorch hands out 32 in turn, and then the same again; and what cuBLAS needs beside its numbers lies in memory that
belongs to a stream, in a graph too, wherever that is replayed. Two graphs that were captured on one stream and are
replayed on two would write into the same memory; and in newer versions the end of one graph takes that memory from the
others of its stream (PyTorch issue 193402).
"""

from __future__ import annotations

import weakref

import torch

PYTORCHS = 32  # for a device and priority


class OwnStream:
    """A stream that is not among the others of this class, as long as they are held and there are any."""

    def __init__(self, device: torch.device) -> None:
        for _ in range(PYTORCHS):
            self.stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            key = (self.stream.device_index, self.stream.cuda_stream)
            if key not in _taken:
                break
        _taken[key] = self


#: Not by the streams themselves: weak references to them crash Python (PyTorch 2.11).
_taken: weakref.WeakValueDictionary[tuple[int, int], OwnStream] = weakref.WeakValueDictionary()
