"""How a range of steps runs: step by step, by graphs that were captured, or as one kernel that stays on the GPU."""

from __future__ import annotations

import torch

from .captured import run_by_graphs
from .loops import Loop
from .persistent.choice import kernel_for


def run_range(loop: Loop, start: int, stop: int, beside: int) -> None:
    """The steps of a loop from `start` to before `stop`. `beside`: how many loops run at the same time."""
    if loop.buffers.device.type != "cuda" or not loop.compile:
        loop.run(start, stop)
        return
    kernel = kernel_for(loop, beside)
    if kernel is not None:
        kernel.run(loop, start, stop)
    elif torch.cuda.is_current_stream_capturing():
        loop.run(start, stop)
    else:
        run_by_graphs(loop, start, stop)
