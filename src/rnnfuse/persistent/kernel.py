"""A kernel of a loop: its source compiled, and calls of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from .. import private
from ..large_products import LargeProducts
from ..loops import Loop
from ..plan import Form, Plan
from .memory import Factors, arguments, make_scratch
from .products import Sides
from .writer import Writer

WARPS = 8  # of a program, unless fewer are tried
MOST_BYTES = 220 * 1024  # for a program: what a multiprocessor holds


class Tile(NamedTuple):
    """What one program has: so many sequences and units, and so many warps; and how it multiplies."""

    rows: int
    units: int
    warps: int
    precision: str  # of products of float32 numbers, in Triton's words

    def grid(self, rows: int, units: int) -> tuple[int, int]:
        return -(-rows // self.rows), -(-units // self.units)


class Kernel:
    """Raises Inexpressible for a loop that cannot be one."""

    def __init__(self, plan: Plan, form: Form) -> None:
        self._plan, self._form = plan, form
        self._writers: dict[tuple[int, Sides], tuple[Writer, Any]] = {}  # what they wrote, compiled
        writer, _ = self._written(WARPS, Sides.WHOLE)
        self.units, self.source, self.barriers = writer.units, writer.source(), writer.barriers
        self._weights, self._side_bytes = writer.weights, writer.side_bytes
        self._factors = [place.factors for place in writer.places if place.factors]
        self._ahead = LargeProducts()
        self._scratch: dict[tuple[Any, ...], tuple[dict[str, Tensor], Tensor]] = {}

    @property
    def needs(self) -> set[fx.Node]:
        """What is multiplied before the kernel starts, which a loop without one need not have."""
        return {node for one in self._factors for node in (one.left, one.weights) if node is not None}

    def weight_bytes(self, tile: Tile) -> int:
        """Of the weights that a program holds. Of float32 numbers, tf32x3 has those that TF32 can express, and the
        rest."""
        twice = {torch.float32: 2} if tile.precision == "tf32x3" else {}
        return tile.units * sum(n * dtype.itemsize * twice.get(dtype, 1) for dtype, n in self._weights.items())

    def coming(self, tile: Tile) -> Sides:
        """How left sides come to a program, as there is room for them beside the weights."""
        room = MOST_BYTES - self.weight_bytes(tile)
        if tile.precision == "tf32x3" and 2 * tile.rows * self._side_bytes <= room:
            return Sides.AS_TWO
        return Sides.WHOLE if tile.rows * self._side_bytes <= room else Sides.IN_PARTS

    def runs_with_fewer_warps(self, tile: Tile) -> bool:
        """Not where each warp takes float32 numbers apart for three products, which needs the registers of all."""
        has_float32 = torch.float32 in self._weights and tile.precision == "tf32x3"
        return not has_float32 or self.coming(tile) is Sides.AS_TWO

    def _written(self, warps: int, coming: Sides) -> tuple[Writer, Any]:
        if (warps, coming) not in self._writers:
            writer = Writer(self._plan, self._form, warps, coming)
            self._writers[warps, coming] = writer, private.load_source(writer.source()).kernel
        return self._writers[warps, coming]

    def run(self, loop: Loop, start: int, stop: int, tile: Tile) -> None:
        """The steps from `start` to before `stop`, in the order of the loop."""
        self.multiply_ahead(loop, start, stop)
        self.launch(loop, start, stop, tile)

    def launch(self, loop: Loop, start: int, stop: int, tile: Tile) -> None:
        """The kernel alone, after what it is given was multiplied."""
        buffers, grid = loop.buffers, tile.grid(loop.buffers.rows, self.units)
        some = loop.carried_memory(0)
        writer, function = self._written(tile.warps, self.coming(tile))
        scratch, counters = self._memory(loop, writer, tile, some)
        goes_on = int(loop.steps_added_up > 0)  # with sums of a kernel before
        if not goes_on:
            sizes = writer.sums.items()
            loop.added_up = {node: torch.empty(grid[0], n, device=some.device) for node, n in sizes}
        loop.steps_added_up += stop - start
        given: list[Any] = []
        for place in writer.places:
            given += arguments(place, loop, scratch)
        lengths = [len(loop.carried_memory(number)) for number in range(len(loop.form.carried))]
        digits = [1 if length == 2 else -1 for length in lengths]  # of a step's number, where there is room for two
        first = stop - 1 if loop.form.from_the_end else start
        on_gpu: dict[str, Any] = {}
        if some.is_cuda:
            # All programs at once, or none: they wait for each other. One stage: no load may be moved before a barrier.
            on_gpu = {"num_warps": tile.warps, "num_stages": 1, "launch_cooperative_grid": True}
        function[grid](
            *given, counters, first, stop - start, buffers.rows, goes_on, *digits,
            BLOCK_ROWS=tile.rows, BLOCK_UNITS=tile.units, PROGRAMS=grid[1], PRECISION=tile.precision, **on_gpu,
        )  # fmt: skip

    def multiply_ahead(self, loop: Loop, start: int, stop: int) -> None:
        """What a launch is given besides the loop's own values."""
        buffers, known = loop.buffers, loop.multiplied
        for factors in self._factors:
            alone = Factors(None, factors.weights)
            if alone not in known:
                weights = buffers.constant[factors.weights].detach()
                known[alone] = weights - weights.mean(0)
            if factors.left is None:
                continue
            weights = known[alone]
            if factors.is_after_turned:
                twice = factors._replace(left=None)
                if twice not in known:
                    known[twice] = weights.t() @ weights
                weights = known[twice]
            if factors not in known:
                known[factors] = weights.new_empty(buffers.steps, buffers.rows, weights.shape[1])
            left = buffers.merged(factors.left, start, stop).detach()
            self._ahead.multiply(left, weights, known[factors][start:stop].flatten(0, 1))

    def _memory(self, loop: Loop, writer: Writer, tile: Tile, like: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Of its own on each stream: two could run at the same time."""
        stream = torch.cuda.current_stream(like.device).cuda_stream if like.is_cuda else 0
        key = (loop.buffers.rows, tile, like.device, stream)
        if key not in self._scratch:
            blocks, _ = tile.grid(loop.buffers.rows, self.units)
            with torch.inference_mode(False):  # what that mode makes cannot be written to outside of it
                scratch = make_scratch(writer.places, loop.buffers.rows, like.device)
                self._scratch[key] = scratch, torch.zeros(blocks * 32, dtype=torch.int32, device=like.device)
        return self._scratch[key]
