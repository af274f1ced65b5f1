"""One layer's pass over a sequence by its plan, forwards or backwards, a range of steps at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from .buffers import Buffers
from .loops import Loop
from .plan import Plan
from .ranges import run_range
from .rewriting import Draw


class Options(NamedTuple):
    reverse: bool
    compile: bool
    persistent: bool | None  # whether loops are one kernel; None: as measured
    states: bool  # whether all states are returned
    recompute: bool  # whether the derivative computes the values of a step again instead of keeping them
    replay: bool  # whether calls that are alike may become CUDA graphs as a whole


class Inputs(NamedTuple):
    """The tensors of a call."""

    sequences: Sequence[Tensor]
    state: Sequence[Tensor]
    extras: Sequence[Tensor]
    trained: Sequence[Tensor]
    fixed: Sequence[Tensor]


class ForwardPass:
    def __init__(
        self,
        plan: Plan,
        options: Options,
        inputs: Inputs,
        keep: bool,
        draws: Sequence[Tensor] | None = None,
    ) -> None:
        """`keep`: what the derivative needs. `draws`: random numbers that were drawn before."""
        steps, rows = inputs.sequences[0].shape[:2]
        device, ports = inputs.sequences[0].device, plan.step.ports
        self._plan = plan
        self._ahead = plan.ahead if keep else plan.ahead_alone
        self.buffers = buffers = Buffers(plan, steps, rows, device)
        constant = zip(
            [*ports.extras, *ports.trained, *ports.fixed], [*inputs.extras, *inputs.trained, *inputs.fixed], strict=True
        )
        buffers.constant.update(constant)
        for node, whole in zip(ports.sequences, inputs.sequences, strict=True):
            buffers.put(node, whole)
        self.draws = draw_numbers(plan, steps, rows, device) if draws is None else draws
        for node, drawn in zip(ports.random, self.draws, strict=True):
            buffers.put(node, drawn)
        buffers.run_once(plan.once)
        self.loop = Loop(
            plan.forward_loop(keep, options.states, options.reverse), buffers, options.compile, options.persistent
        )
        self.begins_with: Sequence[Tensor | None] = inputs.state

    def run(self, start: int, stop: int) -> None:
        self.buffers.run_and_store(self._ahead, start, stop)
        run_range(self.loop, start, stop)

    @property
    def outputs(self) -> Tensor:
        """[steps, …]; memory that is used otherwise too."""
        node = self._plan.step.ports.output
        if node in self.buffers.constant:
            value = self.buffers.constant[node]
            return value.expand(self.buffers.steps, *value.shape)
        return self.buffers.whole(node)

    @property
    def owns_outputs(self) -> bool:
        """Whether the memory of the outputs is that of the loop, and not of an input."""
        return self._plan.hands_on_its_outputs

    def entering(self, start: int, stop: int) -> list[Tensor]:
        """The state before the first of these steps, in the order of the loop."""
        return self.loop.entering(start, stop)

    @property
    def last(self) -> list[Tensor]:
        return self.loop.end()

    def all_states(self) -> list[Tensor]:
        return [self.loop.left(k) for k in range(len(self._plan.step.ports.state))]


def draw_numbers(plan: Plan, steps: int, rows: int, device: torch.device) -> list[Tensor]:
    """The random numbers of all steps."""
    return [_draw(one, _sizes(one, steps, rows), device) for one in plan.step.draws]


def room_for_draws(plan: Plan, steps: int, rows: int, device: torch.device) -> list[Tensor]:
    """Memory for them, in which nothing is drawn."""
    return [torch.zeros(_sizes(one, steps, rows), dtype=one.dtype, device=device) for one in plan.step.draws]


def _sizes(draw: Draw, steps: int, rows: int) -> list[int]:
    return [steps, *[rows if size is None else size for size in draw.sizes]]


def _draw(draw: Draw, sizes: list[int], device: torch.device) -> Tensor:
    if draw.probability is not None:
        return torch.empty(sizes, dtype=draw.dtype, device=device).bernoulli_(draw.probability)
    draws = torch.randn if "randn" in str(draw.target) else torch.rand
    return draws(sizes, dtype=draw.dtype, device=device)


class Gradients(NamedTuple):
    """Of the tensors of a call; of fixed parameters there are none."""

    sequences: list[Tensor | None]
    state: list[Tensor]
    extras: list[Tensor | None]
    trained: list[Tensor | None]


class BackwardPass:
    """Given the buffers of the forward pass, and the gradients of what came out of it."""

    def __init__(
        self,
        plan: Plan,
        options: Options,
        buffers: Buffers,
        d_outputs: Tensor,
        d_last: Sequence[Tensor | None],
        d_states: Sequence[Tensor] = (),
        to_inputs: bool = True,
    ) -> None:
        """`to_inputs`: whether the gradients of the sequences are wanted."""
        self._plan, self._buffers, self._to_inputs = plan, buffers, to_inputs
        buffers.put(plan.step.ports.d_output, d_outputs)
        self.loop = Loop(plan.backward_loop(options.reverse), buffers, options.compile, options.persistent)
        self.begins_with = d_last
        self.loop.given_in_addition = list(d_states)

    def run(self, start: int, stop: int) -> None:
        """The loop, and the gradients of the inputs of these steps."""
        run_range(self.loop, start, stop)
        if self._to_inputs:
            self._buffers.run_and_store(self._plan.after_for_inputs, start, stop)

    def reserve_input_gradient(self) -> Tensor:
        """Where the gradient of the input will be, for the layer below, which begins before it is complete."""
        node, buffers = self._plan.d_sequences[0], self._buffers
        if node is None:
            node = self._plan.step.ports.sequences[0]
            return torch.zeros_like(buffers.new(node, buffers.steps))
        return buffers.whole(node) if node in buffers.series else buffers.reserve(node)

    def gradients(self) -> Gradients:
        """After all steps: what was left for the end, over all of them at once."""
        plan, buffers = self._plan, self._buffers
        self._finish_sums()
        found = buffers.run_over_steps(plan.after, 0, buffers.steps)
        after = dict(zip(plan.after.outputs, found, strict=True))

        def total(node: fx.Node | None) -> Tensor | None:
            if node is None:
                return None
            if node in self.loop.sums:
                return self.loop.sums[node]
            if node in plan.summed:
                return buffers.constant[node]
            if node in after and not plan.has_rows(node):
                return after[node]
            return (buffers.separated(node, after[node], buffers.steps) if node in after else buffers.whole(node)).sum(
                0
            )

        return Gradients(
            [None if one is None or not self._to_inputs else buffers.whole(one) for one in plan.d_sequences],
            self.loop.end(),
            [total(one) for one in plan.d_extras],
            copied_together([total(one) for one in plan.d_trained]),
        )

    def _finish_sums(self) -> None:
        """Of what is added up over all sequences and steps: by the loop, if it was a kernel all the time, or here."""
        plan, buffers = self._plan, self._buffers
        by_kernel = self.loop.added_up if self.loop.steps_added_up == buffers.steps else {}
        for node, of_blocks in by_kernel.items():
            total = of_blocks.sum(0).to(plan.dtype(node))
            buffers.constant[node] = total.view(plan.shape(node, buffers.rows))
        rest = plan.sums_without(by_kernel)
        found = buffers.run_over_steps(rest, 0, buffers.steps)
        buffers.constant.update(zip(rest.outputs, found, strict=True))


def copied_together(tensors: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The gradients of a cell's weights lie side by side, and autograd would copy each. Those that are alike and at
    equal distances are copied at once here, the others are left as they are."""
    found = list(tensors)
    groups: dict[tuple[Any, ...], list[tuple[int, int, Tensor]]] = {}
    for place, one in enumerate(tensors):
        if one is not None and not one.is_contiguous():
            key = (one.untyped_storage().data_ptr(), one.dtype, one.shape, one.stride())
            groups.setdefault(key, []).append((int(one.storage_offset()), place, one))
    for group in groups.values():
        offsets, places, alike = zip(*sorted(group, key=lambda one: one[0]), strict=True)
        distances = {after - before for before, after in pairwise(offsets)}
        if len(distances) == 1:
            sizes, strides = (len(alike), *alike[0].shape), (distances.pop(), *alike[0].stride())
            whole = alike[0].as_strided(sizes, strides, offsets[0]).contiguous()
            for place, copy in zip(places, whole.unbind(0), strict=True):
                found[place] = copy
    return found
