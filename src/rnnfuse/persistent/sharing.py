"""Kernels of layers on top of each other: one after the other with the whole GPU, or at once with a part of it each.

The programs of a kernel mostly wait for each other, so more of them make a step only a little shorter. Where a tile
leaves room for all layers, they follow each other by a few steps instead of waiting for each other's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..loops import Loop
from .choice import kernel_for

GAIN = 0.65  # at once must take less than this part of the time: products over several steps have less of the GPU then


class Sharing(NamedTuple):
    """What was found out, for `explain()`."""

    said: str


def share_gpu(loops: Sequence[Loop], steps: int, length: int) -> bool:
    """Whether these loops, each of which is a kernel, run at once; if so, each has its part of the GPU from now on.

    `length`: of the ranges of steps by which each is behind the one below it. The time of all is estimated from the
    times of each.
    """
    alone, parts = [], []
    for loop in loops:
        kernel = kernel_for(loop)
        whole, part = (kernel and kernel.fastest(loop, count) for count in (1, len(loops)))
        if kernel is None or whole is None or part is None:
            return False
        alone.append(kernel.times[whole])
        parts.append(kernel.times[part])
    in_turn, at_once = sum(alone), max(parts) * (steps + (len(loops) - 1) * length) / steps
    is_shared = at_once < GAIN * in_turn
    for loop in loops:
        loop.shared_by = len(loops) if is_shared else 1
    if len(loops) > 1:
        words = "at once" if is_shared else "one after the other"
        said = f"layers run {words}: {at_once:.1f} µs a step for all at once, {in_turn:.1f} one after the other"
        first = loops[0]
        first.buffers.plan.kernels[("sharing", first.form, first.buffers.rows, len(loops))] = Sharing(said)
    return is_shared
