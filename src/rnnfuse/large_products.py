"""Large products of float32 matrices outside of loops: by cuBLAS, or on tensor cores where that is faster.

cuBLAS multiplies float32 numbers without tensor cores. The kernel here takes each number apart into two of TF32, and is
as exact. A tensor core does not round when it adds to a sum, so that a long sum would lose digits: each few columns of
the left side have a sum of their own, and these are added up as float32 numbers are.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import private
from .measuring import microseconds_captured, processors
from .streams import OwnStream
from .tf32 import NEAREST

_log = logging.getLogger(__name__)

SMALLEST = 5e8  # multiplications: smaller products take less than 20 µs on any GPU with tensor cores for TF32
OLDEST = (8, 0)  # GPUs that have them
GAIN = 0.95  # the kernel must take less than this part of cuBLAS' time
CALLS = 4  # of one measurement
STAGES = 3  # of loads that are under way
PROGRAMS = 2  # that share a multiprocessor: one loads and takes numbers apart while the other multiplies
FEWEST_TILES = 16  # of the inner dimension, for a program

SOURCE = f"""import triton
import triton.language as tl
{NEAREST}

@triton.jit
def kernel(
    left, right, into, rows, columns, inner, length, left_row, left_column, right_row, right_column,
    into_part, into_row, into_column, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr, BLOCK_INNER: tl.constexpr,
):
    across = tl.cdiv(columns, BLOCK_COLUMNS)
    row = ((tl.program_id(0) // across) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
    column = ((tl.program_id(0) % across) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS))[None, :]
    first = tl.program_id(1) * length
    end = tl.minimum(first + length, inner)
    along = tl.arange(0, BLOCK_INNER)
    left_at = left + row.to(tl.int64) * left_row + (first + along).to(tl.int64)[None, :] * left_column
    # Beyond the last column the last one is read again: a mask would take registers that are needed.
    known = tl.minimum(column, columns - 1).to(tl.int64)
    right_at = right + (first + along).to(tl.int64)[:, None] * right_row + known * right_column
    total = tl.zeros((BLOCK_ROWS, BLOCK_COLUMNS), tl.float32)
    for start in range(first, end, BLOCK_INNER):
        inside = start + along < end
        a = tl.load(left_at, mask=(row < rows) & inside[None, :], other=0.0)
        b = tl.load(right_at, mask=inside[:, None], other=0.0)
        near_a, near_b = nearest(a, False), nearest(b, False)
        part = tl.dot(a - near_a, near_b, input_precision="tf32")
        part = tl.dot(near_a, b - near_b, part, input_precision="tf32")
        total += tl.dot(near_a, near_b, part, input_precision="tf32")
        left_at += BLOCK_INNER * left_column
        right_at += BLOCK_INNER * right_row
    into += tl.program_id(1).to(tl.int64) * into_part
    at = into + row.to(tl.int64) * into_row + column.to(tl.int64) * into_column
    tl.store(at, total, mask=(row < rows) & (column < columns))
"""


class Tile(NamedTuple):
    """What one program computes at a time, and its warps."""

    rows: int
    columns: int
    inner: int
    warps: int


#: Of the first, two programs share a multiprocessor; the second loads less.
TILES = (Tile(64, 128, 32, 4), Tile(128, 128, 32, 8))


class LargeProducts:
    """The products of a part of a plan."""

    def __init__(self) -> None:
        self.said: dict[str, None] = {}  # which of them are not cuBLAS'
        self.multiply = self._multiply  # one object: a graph of PyTorch 2.6 knows its functions by identity

    def _multiply(self, left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
        if left.is_cuda and (tile := self._tile(left, right)) is not None:
            return run_kernel(left, right, tile, out)
        return torch.mm(left, right) if out is None else torch.mm(left, right, out=out)

    def _tile(self, left: Tensor, right: Tensor) -> Tile | None:
        found = choice_for(left, right)
        if found is None or found.tile is None:
            return None
        self.said.setdefault(found.said)
        return found.tile


class Choice(NamedTuple):
    tile: Tile | None  # None: cuBLAS
    said: str = ""


_choices: dict[tuple[Any, ...], Choice] = {}


def choice_for(left: Tensor, right: Tensor) -> Choice | None:
    """None: cuBLAS, since nothing is known."""
    (rows, inner), columns = left.shape, right.shape[1]
    if rows * inner * columns < SMALLEST or {left.dtype, right.dtype} != {torch.float32}:
        return None
    device = left.device
    # Sizes with as many binary digits are measured once: the number of steps may be another one at each call.
    sizes = tuple((size - 1).bit_length() for size in (rows, inner, columns))
    key = (device, sizes, left.stride(1) == 1, right.stride(1) == 1, torch.backends.cuda.matmul.allow_tf32)
    if key not in _choices:
        if torch.cuda.is_current_stream_capturing():
            return None  # nothing can be measured now
        _choices[key] = _choose(left, right, key[1:])
    return _choices[key]


def _choose(left: Tensor, right: Tensor, kind: tuple[Any, ...]) -> Choice:
    device = left.device
    if torch.backends.cuda.matmul.allow_tf32 or torch.cuda.get_device_capability(device) < OLDEST:
        return Choice(None)
    key = private.hashed(repr((SOURCE, TILES, STAGES, kind, torch.cuda.get_device_name(device), processors(device))))
    found = private.remembered(key)
    if found is None:
        place = OwnStream(device)
        if not place.is_alone:
            return Choice(None)
        found = json.dumps(_measured(left, right, place))
        private.remember(key, found)
    return _read(json.loads(found), left, right)


def _measured(left: Tensor, right: Tensor, place: OwnStream) -> dict[str, Any]:
    """Microseconds of a product, by cuBLAS and with each tile."""

    out = torch.empty(len(left), right.shape[1], device=left.device)

    def time_of(call: Callable[[], Any]) -> float:
        return microseconds_captured(lambda: [call() for _ in range(CALLS)], place) / CALLS

    times = []
    for tile in TILES:
        try:
            times.append((tile, time_of(partial(run_kernel, left, right, tile, out))))
        except Exception as error:  # whatever Triton raises where a tile asks for too much, or it fails
            _log.info("rnnfuse: no product with %s: %s", tile, str(error))
    return {"cublas": time_of(partial(torch.mm, left, right, out=out)), "tiles": times}


def _read(found: dict[str, Any], left: Tensor, right: Tensor) -> Choice:
    times = {Tile(*tile): time for tile, time in found["tiles"]}
    tile = min(times, key=times.__getitem__, default=None)
    if tile is None or times[tile] > GAIN * found["cublas"]:
        return Choice(None)
    (rows, inner), columns = left.shape, right.shape[1]
    compared = f"{times[tile]:.0f} µs, {found['cublas']:.0f} by cuBLAS"
    return Choice(tile, f"products like {rows} × {inner} × {columns} are made on tensor cores: {compared}")


def run_kernel(left: Tensor, right: Tensor, tile: Tile, out: Tensor | None = None) -> Tensor:
    """`out`: its rows are contiguous."""
    if out is None:
        out = torch.empty(len(left), right.shape[1], device=left.device)
    left, right, is_turned = _laid_out(left, right)
    (rows, inner), columns, device = left.shape, right.shape[1], left.device
    tiles = -(-rows // tile.rows) * -(-columns // tile.columns)
    # Where there are too few of them for the GPU, a sum is cut into parts, which are added up in the end.
    parts = max(1, min(PROGRAMS * processors(device) // tiles, inner // (FEWEST_TILES * tile.inner)))
    length = -(-inner // (parts * tile.inner)) * tile.inner
    parts = -(-inner // length)
    into = out[None] if parts == 1 else torch.empty(parts, *out.shape, device=device)
    how = {"num_warps": tile.warps, "num_stages": STAGES} if left.is_cuda else {}
    place = into.transpose(1, 2) if is_turned else into
    compiled()[(tiles, parts)](
        left, right, place, rows, columns, inner, length, *left.stride(), *right.stride(), *place.stride(),
        BLOCK_ROWS=tile.rows, BLOCK_COLUMNS=tile.columns, BLOCK_INNER=tile.inner, **how,
    )  # fmt: skip
    return out if parts == 1 else torch.sum(into, 0, out=out)


def _laid_out(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, bool]:
    """Sides of this product, or of the same turned: such that the columns of the right one are contiguous.

    Tensor cores read the right side from shared memory, so, and threads write it there. They would write rows into the
    same bank. Where neither side of either product is so, the smaller one is copied.
    """
    if right.stride(0) != 1 and left.stride(1) != 1:
        if left.numel() < right.numel():
            left = left.contiguous()
        else:
            right = right.t().contiguous().t()
    return (left, right, False) if right.stride(0) == 1 else (right.t(), left.t(), True)


@cache
def compiled() -> Any:
    return private.load_source(SOURCE).kernel
