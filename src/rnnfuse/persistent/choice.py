"""Whether a loop runs as one kernel, and with which tile: found by measuring, and remembered.

Wrong tiles cost ten times as much as right ones, when the weights do not fit on a multiprocessor. So a few are timed
with the loop's own shapes, beside the loop as it runs otherwise, and the fastest is taken.
"""

from __future__ import annotations

import json
import logging
import statistics
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from math import prod
from typing import Any, NamedTuple

import torch

from .. import private
from ..captured import captured_like
from ..loops import Loop
from ..streams import NO_STREAM, OwnStream, captured_on
from .kernel import MOST_BYTES, WARPS, Kernel, Tile
from .text import Inexpressible

_log = logging.getLogger(__name__)

STEPS = 64  # of a trial, of which the beginning is a part: programs load their weights
ROUNDS = 5
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
        most = _processors(loop.buffers.device) // shared_by
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
    processors, rows = _processors(loop.buffers.device), loop.buffers.rows
    grids: set[tuple[int, int]] = set()
    for block in (16, 32, 64):
        for units in (8, 16, 32):
            tile = Tile(block, units, WARPS, _precision())
            grid = tile.grid(rows, kernel.units)
            fits = kernel.weight_bytes(tile) <= MOST_BYTES and grid[0] * grid[1] <= processors
            if fits and len(grids) < GRIDS and grid not in grids:
                grids.add(grid)
                yield tile
                if len(grids) == 1 and kernel.runs_with_fewer_warps(tile):
                    yield tile._replace(warps=WARPS // 2)


@cache
def _processors(device: torch.device) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _precision() -> str:
    """Of float32 products. Tensor cores have none: three products of TF32 numbers make one that is as exact."""
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"


def _measured(kernel: Kernel, loop: Loop, tiles: list[Tile], place: OwnStream) -> str:
    """What was found, as text: the times of a step in microseconds, as it runs otherwise and with each tile.

    All on a stream of its own, because it ends here: the end of a graph takes cuBLAS' memory from others of its stream.
    """
    trial = captured_like(loop, STEPS, torch.cuda.graph_pool_handle(), place)
    ordinary = _microseconds(trial.replay)
    own = trial.loop.buffers.constant
    own.update((node, loop.buffers.constant[node]) for node in own)  # laid out as they will be: or all compiles again
    times: dict[Tile, float] = {}
    for tile in tiles:
        try:
            times[tile] = _microseconds_captured(lambda: kernel.run(trial.loop, 0, STEPS, tile), place)  # noqa: B023
        except Exception as error:  # whatever Triton raises where a tile asks for too much, or it fails
            _log.info("rnnfuse: no kernel with %s: %s", tile, str(error))
    return json.dumps({"ordinary": ordinary, "tiles": [[tile, time] for tile, time in times.items()]})


def _microseconds_captured(call: Callable[[], Any], place: OwnStream) -> float:
    """Of a step, without the host's part, which other work can hide."""
    stream = place.stream
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
        graph = torch.cuda.CUDAGraph()
        with captured_on(graph, place, torch.cuda.graph_pool_handle()):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    return _microseconds(graph.replay)


def _microseconds(call: Callable[[], Any]) -> float:
    """Of a step."""
    call()
    times = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(float(begin.elapsed_time(end)) * 1e3 / STEPS)
    return float(statistics.median(times))


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
        kernel.source, sizes, loop.buffers.rows, torch.cuda.get_device_name(device), _processors(device),
        torch.backends.cuda.matmul.allow_tf32, GRIDS, WARPS, "times of all tiles, of fewer warps too",
    )  # fmt: skip
    return private.hashed(repr(known))
