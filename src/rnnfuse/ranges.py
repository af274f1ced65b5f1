"""How a range of steps runs: step by step, by graphs that were captured, or as one kernel that stays on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from . import private
from .captured import run_by_graphs
from .loops import Loop
from .persistent.choice import kernel_for
from .persistent.sharing import share_gpu
from .streams import is_stepwise
from .wavefront import run_wavefront


class Layer(Protocol):
    loop: Loop
    begins_with: Sequence[Tensor | None]  # its first step; None: zeros

    def run(self, start: int, stop: int) -> None: ...


def begin(layers: Sequence[Layer]) -> None:
    """What enters the first step of each layer, for all of them at once."""
    into: list[Tensor] = []
    values: list[Tensor | None] = []
    for layer in layers:
        into += layer.loop.entering(0, layer.loop.buffers.steps)
        values += layer.begins_with
    given = [(first, value) for first, value in zip(into, values, strict=True) if value is not None]
    private.copy_all([first for first, _ in given], [value for _, value in given])
    private.zero_all([first for first, value in zip(into, values, strict=True) if value is None])


def run_range(loop: Loop, start: int, stop: int) -> None:
    """The steps of a loop from `start` to before `stop`."""
    if loop.buffers.device.type != "cuda" or not loop.compile:
        loop.run(start, stop)
    elif (kernel := kernel_for(loop)) is not None:
        kernel.run(loop, start, stop)
    elif is_stepwise():
        loop.run(start, stop)
    else:
        run_by_graphs(loop, start, stop)


def run_layers(layers: Sequence[Layer], steps: int, from_the_end: bool, device: torch.device) -> None:
    """All steps of layers on top of each other: at the same time, or one after the other as kernels on all of a GPU."""
    loops = [layer.loop for layer in layers]
    begin(layers)
    kernels = [kernel for loop in loops if (kernel := kernel_for(loop)) is not None]
    if len(kernels) == len(loops) and not share_gpu(loops, kernels, steps):
        for layer in layers:
            layer.run(0, steps)
    else:
        run_wavefront([layer.run for layer in layers], steps, from_the_end, device)
