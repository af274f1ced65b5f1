"""Ranges of a loop as CUDA graphs, captured here: a plain training loop need not capture anything itself.

A graph always works on the same memory. So there is one for each length that is a power of two, with memory of its own
for that many steps; what a range needs is copied in, and what it made is copied out. That costs little, since a step
takes ten microseconds and its values are a few hundred kilobytes. No graph depends on the number of steps.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

import torch
from torch import Tensor

from . import private
from .buffers import Buffers
from .loops import Loop
from .plan import Plan
from .streams import NO_STREAM, OwnStream, captured_on

LONGEST = 64
SHORTEST = 2  # fewer steps are run one by one


def run_by_graphs(loop: Loop, start: int, stop: int) -> None:
    """The steps of a loop from `start` to before `stop`."""
    if not place_of(loop.buffers.plan, loop.buffers.device)[1].is_alone:
        loop.run(start, stop)  # graphs of one stream that run at the same time would write into the same memory
        return
    ranges = []
    while start < stop:
        length = stop - start
        length = min(LONGEST, 1 << (length.bit_length() - 1)) if length >= SHORTEST else length
        ranges.append((start, start + length))
        start += length
    for first, end in reversed(ranges) if loop.form.from_the_end else ranges:
        if end - first < SHORTEST:
            loop.run(first, end)
        else:
            graph_for(loop, end - first).run(loop, first)


class CapturedRange:
    def __init__(self, loop: Loop, length: int, pool: Any, place: OwnStream) -> None:
        """Like this loop, for so many steps; captured on a stream of its own, replayed on the current one."""
        self._lock = threading.Lock()
        self._given_by = -1
        form, real = loop.form, loop.buffers
        self._buffers = own = Buffers(real.plan, length, real.rows, real.device)
        entering = {enters for enters, _ in form.carried}
        leaving = [leaves for _, leaves in form.carried if leaves is not None and leaves not in form.part.outputs]
        self._stepwise = []
        for node in dict.fromkeys([*form.part.inputs, *leaving]):
            if node in real.constant:
                own.constant[node] = torch.empty_like(real.constant[node], memory_format=torch.contiguous_format)
            elif node not in entering:
                own.reserve(node)
                self._stepwise.append(node)
        self.loop = Loop(form, own, compile=True)
        # What must be known for every step, and does not lie within something else.
        elsewhere = {*self.loop.carries, *form.part.within}
        self._made = [node for node in form.part.outputs if node in form.stored and node not in elsewhere]
        self.loop.given_in_addition = [torch.zeros_like(one[:length]) for one in loop.given_in_addition]
        self.loop.run(0, length)  # compiles what is not compiled yet
        self._graph = torch.cuda.CUDAGraph()
        with captured_on(self._graph, place, pool):
            for total in self.loop.sums.values():
                total.zero_()
            self.loop.run(0, length)

    def replay(self) -> None:
        """With whatever its memory holds."""
        self._graph.replay()

    def run(self, loop: Loop, start: int) -> None:
        """These steps of a loop."""
        own, real, length = self._buffers, loop.buffers, self._buffers.steps
        real.lay_out(loop.form.part.inputs)  # what lies alike is copied by one kernel
        with self._lock:
            into: list[Tensor] = []
            given: list[Tensor] = []
            if self._given_by != real.number:
                into += own.constant.values()
                given += [real.constant[node] for node in own.constant]
                self._given_by = real.number
            into += [own.whole(node) for node in self._stepwise]
            given += [real.series[node].between(start, start + length) for node in self._stepwise]
            into += self.loop.given_in_addition
            given += [one[start : start + length] for one in loop.given_in_addition]
            into += self.loop.entering(0, length)
            given += loop.entering(start, start + length)
            private.copy_all(into, given)
            self._graph.replay()
            made = [own.whole(node) for node in self._made]
            into = [real.series[node].between(start, start + length) for node in self._made]
            over, carried = loop.carried_over(start, start + length), self.loop.carried_over(0, length)
            private.copy_all([*into, *over], [*made, *carried])
            for node, total in loop.sums.items():
                total.add_(self.loop.sums[node])


def captured_like(loop: Loop, length: int, pool: Any, place: OwnStream) -> CapturedRange:
    """Whoever calls first: tensors that inference mode makes cannot be written to outside of it."""
    with torch.inference_mode(False), torch.no_grad():
        return CapturedRange(loop, length, pool, place)


def graph_for(loop: Loop, length: int) -> CapturedRange:
    """Each stream has its own, and its own memory: two could run at the same time."""
    plan, device = loop.buffers.plan, loop.buffers.device
    stream = torch.cuda.current_stream(device).cuda_stream
    products = torch.backends.cuda.matmul.allow_tf32
    key = (loop.form, loop.buffers.rows, length, stream, len(loop.given_in_addition), products)
    if key not in plan.graphs:
        plan.graphs[key] = captured_like(loop, length, *place_of(plan, device))
    found: CapturedRange = plan.graphs[key]
    return found


def place_of(plan: Plan, device: torch.device) -> tuple[Any, OwnStream]:
    """Memory for the graphs of a plan that are replayed on the current stream, and where they are captured."""
    stream = torch.cuda.current_stream(device).cuda_stream
    if stream not in plan.graph_places:
        place = OwnStream(device)
        if not place.is_alone:
            warnings.warn(f"{NO_STREAM}: a layer launches its steps one by one, which is slower", RuntimeWarning, 2)
        plan.graph_places[stream] = torch.cuda.graph_pool_handle(), place
    found: tuple[Any, OwnStream] = plan.graph_places[stream]
    return found
