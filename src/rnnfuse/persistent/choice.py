"""Whether a loop runs as one kernel, and with which tile: found by measuring, and remembered.

Wrong tiles cost ten times as much as right ones, when the weights do not fit on a multiprocessor. So a few are timed
with the loop's own shapes, beside the loop as it runs otherwise, and the fastest is taken.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from functools import partial
from math import prod
from typing import Any, NamedTuple

import torch

from .. import private
from ..captured import captured_like
from ..loops import Loop
from ..measuring import microseconds, microseconds_captured, processors
from ..streams import NO_STREAM, OwnStream
from .kernel import MOST_BYTES, WARPS, Kernel, Tile
from .text import Inexpressible

_log = logging.getLogger(__name__)

STEPS = 64  # of a trial, of which the beginning is a part: programs load their weights
GAIN = 0.95  # a kernel must take less than this part of the time: it keeps other work off the GPU
GRIDS = 2  # that are tried


class Choice(NamedTuple):
    """A kernel and its tiles, or why there is none."""

    kernel: Kernel | None
    said: str
    times: Mapping[Tile, float] = {}  # microseconds a step, with the whole GPU

    def run(self, loop: Loop, start: int, stop: int) -> None:
        assert self.kernel is not None
        tile = self.fastest(loop, loop.shared_by)
        assert tile is not None
        self.kernel.run(loop, start, stop, tile)

    def fastest(self, loop: Loop, shared_by: int) -> Tile | None:
        """The fastest tile where so many loops share the GPU; None: each has too many programs for that."""
        assert self.kernel is not None
        most = processors(loop.buffers.device) // shared_by
        fitting = [tile for tile in self.times if prod(tile.grid(loop.buffers.rows, self.kernel.units)) <= most]
        return min(fitting, key=self.times.__getitem__, default=None)


def kernel_for(loop: Loop) -> Choice | None:
    """How this loop runs as one kernel; None: it does not."""
    plan, device = loop.buffers.plan, loop.buffers.device
    if loop.persistent is False or loop.given_in_addition or not loop.compile or device.type != "cuda":
        return None
    tf32 = torch.backends.cuda.matmul.allow_tf32
    key = (loop.form, loop.buffers.rows, device, tf32, loop.persistent)
    if key not in plan.kernels:
        if torch.cuda.is_current_stream_capturing():
            return None  # nothing can be measured now
        plan.kernels[key] = _choose(loop)
    found: Choice = plan.kernels[key]
    return found if found.kernel is not None else None


def _choose(loop: Loop) -> Choice:
    name = "the loop backwards" if loop.form in loop.buffers.plan.backward_loops else "the loop"
    try:
        kernel = _kernel(loop)
    except Inexpressible as error:
        return Choice(None, f"{name} is not one kernel: {error}")
    tiles = list(_tiles(kernel, loop))
    if not tiles:
        return Choice(None, f"{name} is not one kernel: its weights do not fit on the GPU's multiprocessors")
    key = _key(kernel, loop)
    found = private.remembered(key)
    if found is None:
        place = OwnStream(loop.buffers.device)
        if not place.is_alone:
            return Choice(None, f"{name} is not one kernel: {NO_STREAM}, so that it could not be measured")
        found = _measured(kernel, loop, tiles, place)
        private.remember(key, found)
    return _read(json.loads(found), name, kernel, loop)


def _kernel(loop: Loop) -> Kernel:
    plan = loop.buffers.plan
    made: Any = plan.kernels.get(loop.form)
    if made is None:
        try:
            made = Kernel(plan, loop.form)
        except Inexpressible as error:
            made = str(error)  # the error itself would hold all frames of this call, and with them its whole graph
        except ImportError as error:
            made = f"Triton cannot be imported: {error}"
        plan.kernels[loop.form] = made
    if isinstance(made, str):
        raise Inexpressible(made)
    return made  # type: ignore[no-any-return]


def _tiles(kernel: Kernel, loop: Loop) -> Iterator[Tile]:
    """Those whose programs can all run at the same time, which a barrier needs: of the smallest, there are the most."""
    most, rows = processors(loop.buffers.device), loop.buffers.rows
    grids: set[tuple[int, int]] = set()
    for block in (16, 32, 64):
        for units in (8, 16, 32):
            tile = Tile(block, units, WARPS, _precision())
            grid = tile.grid(rows, kernel.units)
            fits = kernel.weight_bytes(tile) <= MOST_BYTES and grid[0] * grid[1] <= most
            if fits and len(grids) < GRIDS and grid not in grids:
                grids.add(grid)
                yield tile
                if len(grids) == 1 and kernel.runs_with_fewer_warps(tile):
                    yield tile._replace(warps=WARPS // 2)


def _precision() -> str:
    """Of float32 products. Tensor cores have none: three products of TF32 numbers make one that is as exact."""
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"


def _measured(kernel: Kernel, loop: Loop, tiles: list[Tile], place: OwnStream) -> str:
    """What was found, as text: the times of a step in microseconds, as it runs otherwise and with each tile.

    All on a stream of its own, because it ends here: the end of a graph takes cuBLAS' memory from others of its stream.
    """
    trial = captured_like(loop, STEPS, torch.cuda.graph_pool_handle(), place)
    ordinary = microseconds(trial.replay) / STEPS
    own = trial.loop.buffers.constant
    for node in kernel.needs:  # which the loop as it runs otherwise need not have
        if node in loop.buffers.constant:
            own[node] = loop.buffers.constant[node]
        elif node not in trial.loop.buffers.series:
            trial.loop.buffers.reserve(node)
    own.update([(node, loop.buffers.constant[node]) for node in own])  # laid out as they will be: or all compiles again
    kernel.multiply_ahead(trial.loop, 0, STEPS)  # once: over so few steps it would take longer for each
    times: dict[Tile, float] = {}
    for tile in tiles:
        try:
            run = partial(kernel.launch, trial.loop, 0, STEPS, tile)
            times[tile] = microseconds_captured(run, place) / STEPS
        except Exception as error:  # whatever Triton raises where a tile asks for too much, or it fails
            _log.info("rnnfuse: no kernel with %s: %s", tile, str(error))
    return json.dumps({"ordinary": ordinary, "tiles": [[tile, time] for tile, time in times.items()]})


def _read(found: dict[str, Any], name: str, kernel: Kernel, loop: Loop) -> Choice:
    times = {Tile(*tile): time for tile, time in found["tiles"]}
    if not times:
        return Choice(None, f"{name} is not one kernel: none could be compiled")
    tile = min(times, key=times.__getitem__)
    compared = f"{times[tile]:.1f} µs a step as one kernel, {found['ordinary']:.1f} otherwise"
    if not loop.persistent and times[tile] > GAIN * found["ordinary"]:
        return Choice(None, f"{name} is not one kernel: it takes {compared}")
    asked = ", as asked for" if loop.persistent else ""
    return Choice(kernel, f"{name} is one kernel{asked}: {compared} ({_in_words(kernel, tile, loop)})", times)


def _in_words(kernel: Kernel, tile: Tile, loop: Loop) -> str:
    blocks, programs = tile.grid(loop.buffers.rows, kernel.units)
    return (
        f"{blocks} × {programs} programs of {tile.rows} sequences and {tile.units} units, "
        f"{kernel.barriers} barrier{'s' if kernel.barriers != 1 else ''} a step"
    )


def _key(kernel: Kernel, loop: Loop) -> str:
    """All that the times depend on."""
    device = loop.buffers.device
    sizes = [tuple(tensor.shape) for tensor in loop.buffers.constant.values()]
    known = (
        kernel.source, sizes, loop.buffers.rows, torch.cuda.get_device_name(device), processors(device),
        torch.backends.cuda.matmul.allow_tf32, GRIDS, WARPS, "times of all tiles, of fewer warps too",
    )  # fmt: skip
    return private.hashed(repr(known))
