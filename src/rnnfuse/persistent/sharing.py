"""Kernels of layers on top of each other: one after the other with the whole GPU, or at once with a part of it each.

The programs of a kernel mostly wait for each other, so more of them make a step only a little shorter. Where a tile
leaves room for all layers, they follow each other by a few steps instead of waiting for each other's end.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..loops import Loop
from ..wavefront import range_length
from .choice import Choice

GAIN = 0.65  # at once must take less than this part of the time: products over several steps have less of the GPU then


def share_gpu(loops: Sequence[Loop], kernels: Sequence[Choice], steps: int) -> bool:
    """Whether the kernels of these loops run at once; if so, each has its part of the GPU from now on.

    The time of all is estimated from the times of each: it is behind the one below it by a range of steps.
    """
    if len(loops) < 2:
        return False
    alone, parts = [], []
    for loop, kernel in zip(loops, kernels, strict=True):
        whole, part = (kernel.fastest(loop, count) for count in (1, len(loops)))
        if whole is None or part is None:
            return False
        alone.append(kernel.times[whole])
        parts.append(kernel.times[part])
    behind = (len(loops) - 1) * range_length(steps)
    in_turn, at_once = sum(alone), max(parts) * (steps + behind) / steps
    is_shared = at_once < GAIN * in_turn
    for loop in loops:
        loop.shared_by = len(loops) if is_shared else 1
    words, first = "at once" if is_shared else "one after the other", loops[0]
    said = f"layers run {words}: {at_once:.1f} µs a step for all at once, {in_turn:.1f} one after the other"
    # For `explain()`, beside those of its loops.
    first.buffers.plan.kernels[("sharing", first.form, first.buffers.rows, len(loops))] = Choice(None, said)
    return is_shared
