"""Kernels of layers on top of each other: one after the other with the whole GPU, or at once with a part of it each.

A step of a kernel is short because many multiprocessors share it, but four times as many are not four times as fast:
most of a step is waiting. So layers that follow each other by a few steps take less, as long as all of them have room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..loops import Loop
from .choice import kernel_for

GAIN = 0.85  # at once must take less than this part of the time: products over several steps have less of the GPU then


class Shared(NamedTuple):
    """What was found out, for `explain()`."""

    at_once: bool
    said: str


def share_gpu(loops: Sequence[Loop], steps: int, length: int) -> bool:
    """Whether these loops, each of which is a kernel, run at once; if so, each knows from now on that it has its part.

    `length`: of the ranges of steps by which each is behind the one below it.
    """
    if len(loops) < 2:
        return False
    alone = [kernel_for(loop) for loop in loops]
    for loop in loops:
        loop.shared_by = len(loops)
    parts = [kernel_for(loop) for loop in loops]
    if None in alone or None in parts:
        at_once = False
    else:
        in_turn = sum(one.microseconds for one in alone if one)
        behind = (len(loops) - 1) * length
        together = max(one.microseconds for one in parts if one) * (steps + behind) / steps
        at_once = together < GAIN * in_turn
        words = "at once" if at_once else "one after the other"
        said = f"layers run {words}: {together:.1f} µs a step of all at once, {in_turn:.1f} one after the other"
        plan, first = loops[0].buffers.plan, loops[0]
        plan.kernels[("shared", first.form, first.buffers.rows, len(loops))] = Shared(at_once, said)
    if not at_once:
        for loop in loops:
            loop.shared_by = 1
    return at_once
