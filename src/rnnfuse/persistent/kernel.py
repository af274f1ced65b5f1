"""A kernel of a loop: its source compiled, and calls of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import private
from ..loops import Loop
from ..plan import Form, Plan
from .memory import arguments, make_scratch
from .writer import Writer


class Tile(NamedTuple):
    """What one program has: so many sequences and units, and so many warps."""

    rows: int
    units: int
    warps: int

    def grid(self, rows: int, units: int) -> tuple[int, int]:
        return -(-rows // self.rows), -(-units // self.units)


class Kernel:
    """Raises Inexpressible for a loop that cannot be one."""

    def __init__(self, plan: Plan, form: Form) -> None:
        self._writer = writer = Writer(plan, form)
        self.units, self.source, self.barriers = writer.units, writer.source(), writer.barriers
        self._function: Any = private.load_source(self.source).kernel
        self._scratch: dict[tuple[Any, ...], tuple[dict[str, Tensor], Tensor]] = {}

    def weight_bytes(self, units: int) -> int:
        """Of the weights that a program with so many units holds."""
        return self._writer.weights * units * 4

    def run(self, loop: Loop, start: int, stop: int, tile: Tile) -> Any:
        """The steps from `start` to before `stop`, in the order of the loop, in one launch."""
        buffers, grid = loop.buffers, tile.grid(loop.buffers.rows, self.units)
        some = loop.carried_memory(0)
        scratch, counters = self._memory(loop, grid, some)
        counters.zero_()
        given: list[Any] = []
        for place in self._writer.places:
            given += arguments(place, loop, scratch)
        carried = [len(loop.carried_memory(number)) for number in range(len(loop.form.carried))]
        first = stop - 1 if loop.form.from_the_end else start
        on_gpu: dict[str, Any] = {}
        if some.is_cuda:
            # All programs at once, or none: they wait for each other. One stage: no load may be moved before a barrier.
            on_gpu = {"num_warps": tile.warps, "num_stages": 1, "launch_cooperative_grid": True}
        return self._function[grid](
            *given, counters, first, stop - start, buffers.rows, *carried,
            BLOCK_ROWS=tile.rows, BLOCK_UNITS=tile.units, PROGRAMS=grid[1], PRECISION=_precision(), **on_gpu,
        )  # fmt: skip

    def _memory(self, loop: Loop, grid: tuple[int, int], like: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Of its own on each stream: two could run at the same time."""
        stream = torch.cuda.current_stream(like.device).cuda_stream if like.is_cuda else 0
        key = (loop.buffers.rows, grid, like.device, stream)
        if key not in self._scratch:
            scratch = make_scratch(self._writer.places, loop.buffers.rows, like.device)
            counters = torch.zeros(grid[0] * 32, dtype=torch.int32, device=like.device)
            self._scratch[key] = scratch, counters
        return self._scratch[key]


def _precision() -> str:
    """Of products of float32 numbers."""
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "ieee"
