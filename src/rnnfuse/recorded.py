"""Both passes of a chain of layers as CUDA graphs: the host then has one call to make for each, however many steps.

A graph always works on the same memory. Sequences, states and extra inputs are copied into it and results out of it, so
nobody outside ever holds it. Parameters are used where they are. What the derivative needs stays in the graphs' memory
until the next call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from . import private
from .captured import place_of
from .chain import Kept, kept_by, run_backward, run_forward
from .links import Link, divided, needs_input_gradients
from .passes import room_for_draws
from .plan import Plan
from .streams import NO_STREAM, captured_on, stepwise


class Graphs:
    """CUDA graphs that are replayed on the current stream, one after the other, in memory of their own."""

    def __init__(self, plan: Plan, device: torch.device) -> None:
        self._place = place_of(plan, device)[1]
        if not self._place.is_alone:  # the end of somebody else's graph would take what cuBLAS needs
            raise RuntimeError(NO_STREAM)
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, function: Callable[[], list[Any]]) -> tuple[list[Any], Callable[[], None]]:
        """What a function returns, and how its values are computed again, in the same places."""
        graph = torch.cuda.CUDAGraph()
        with captured_on(graph, self._place, self._pool):
            found = function()
        return found, graph.replay


#: By the type of a device. Others have no graphs, and nothing to gain from them.
RECORDERS: dict[str, Callable[[Plan, torch.device], Any]] = {"cuda": Graphs}


class Recorded:
    def __init__(self, links: Sequence[Link], tensors: Sequence[Tensor], keep: bool) -> None:
        """Like this call. `keep`: with the derivative."""
        device = tensors[0].device
        self._recorder = RECORDERS[device.type](links[0].plan, device)
        # Whoever calls first: tensors that inference mode makes cannot be written to outside of it.
        with torch.inference_mode(False), torch.no_grad():
            self._make_room(links, tensors)
            self._record(links, keep, needs_input_gradients(links, tensors))

    def _make_room(self, links: Sequence[Link], tensors: Sequence[Tensor]) -> None:
        steps, rows = tensors[0].shape[:2]
        self._brought: list[Tensor] = []
        self._inputs: list[Tensor] = []
        for link, given in zip(links, divided(tensors, [sum(link.counts) for link in links]), strict=True):
            brought, parameters = divided(given, [sum(link.counts[:3]), sum(link.counts[3:])])
            own = [torch.empty_like(one, memory_format=torch.contiguous_format) for one in brought]
            private.copy_all(own, brought)
            self._brought += own
            # The alias keeps their memory: no other tensor can get it while a graph reads it.
            self._inputs += [*own, *(one.detach() for one in parameters)]
        self._draws = [one for link in links for one in room_for_draws(link.plan, steps, rows, tensors[0].device)]
        self._brought += self._draws

    def _record(self, links: Sequence[Link], keep: bool, to_inputs: bool) -> None:
        count = 1 + sum(link.counts[1] for link in links)
        kept: list[Kept] = []

        def forward() -> list[Tensor]:
            passes = run_forward(links, self._inputs, keep, self._draws)
            made = [passes[-1].outputs, *(one for a_pass in passes for one in a_pass.last)]
            found = [one.contiguous() for one in made]  # many such are copied out by few kernels
            if keep:
                what, tensors = kept_by(links, passes)
                kept[:] = [what]
                found += tensors
            return found

        def backward(values: Sequence[Tensor]) -> list[Tensor | None]:
            found = run_backward(links, kept[0], values, self._d_results, to_inputs)
            return [None if one is None else one.contiguous() for one in found]

        # Once without a graph, on the same memory: whatever is compiled, loaded or measured at a first call cannot be
        # captured. Not on the stream of the capture: cuBLAS' memory there must be the graphs' own.
        with stepwise():
            tried = forward()
            self._d_results = [torch.zeros_like(one) for one in tried[:count]] if keep else []
            self._is_zero = [True] * len(self._d_results)
            if keep:
                backward(tried[count:])
            del tried
        found, self._replay_forward = self._recorder.record(forward)
        self.results, self._kept = found[:count], found[count:]
        if keep:
            self._gradients, self._replay_backward = self._recorder.record(lambda: backward(self._kept))

    def forward(self, brought: Sequence[Tensor]) -> list[Tensor]:
        """The results for what a call brings: sequences, states and extra inputs of all layers, and random numbers."""
        private.copy_all(self._brought, brought)
        self._replay_forward()
        return private.copies(self.results)

    def backward(self, gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The gradients of all that the newest forward pass was given, parameters included."""
        into: list[Tensor] = []
        given: list[Tensor] = []
        for k, (own, gradient) in enumerate(zip(self._d_results, gradients, strict=True)):
            if gradient is not None:
                into.append(own)
                given.append(gradient)
            elif not self._is_zero[k]:  # mostly it is: few losses depend on last states
                own.zero_()
            self._is_zero[k] = gradient is None
        private.copy_all(into, given)
        self._replay_backward()
        found = iter(private.copies([one for one in self._gradients if one is not None]))
        return [None if one is None else next(found) for one in self._gradients]
