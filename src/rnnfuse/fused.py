"""A whole sequence by a plan: forwards and backwards, as one function of autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from . import private
from .parts import Part
from .plan import Plan
from .rewriting import Draw
from .zones import Zone


class Options(NamedTuple):
    reverse: bool
    compile: bool
    states: bool  # whether all states are returned


class Values:
    """The values of a plan's nodes in one call: those that stay, those that differ from step to step, and states."""

    def __init__(self, plan: Plan, steps: int, rows: int) -> None:
        self.plan, self.steps, self.rows = plan, steps, rows
        self.constant: dict[fx.Node, Tensor] = {}
        self.stepwise: dict[fx.Node, Tensor | Sequence[Tensor]] = {}  # [steps, …], or one value for each step

    def run_once(self, part: Part) -> None:
        if part:
            found = part(self.rows, [self.constant[one] for one in part.inputs])
            # Copied once, because every step reads them: products with transposed weights are slower.
            self.constant.update((node, one.contiguous()) for node, one in zip(part.outputs, found, strict=True))

    def run_over_all_steps(self, part: Part) -> list[Tensor]:
        return list(part(self.steps * self.rows, [self.merged(one) for one in part.inputs])) if part else []

    def merged(self, node: fx.Node) -> Tensor:
        """The rows of all steps in one dimension."""
        if node in self.constant:
            return self.constant[node]
        value = self.stepwise[node]
        whole = value if isinstance(value, Tensor) else torch.stack(list(value))
        dimension = self.plan.row_dimension(node)
        return whole.movedim(0, dimension).flatten(dimension, dimension + 1)

    def separated(self, node: fx.Node, value: Tensor) -> Tensor:
        """The inverse of `merged`."""
        dimension = self.plan.row_dimension(node)
        sizes = [*value.shape[:dimension], self.steps, self.rows, *value.shape[dimension + 1 :]]
        return value.reshape(sizes).movedim(dimension, 0)

    def at(self, node: fx.Node, t: int) -> Tensor:
        return self.constant[node] if node in self.constant else self.stepwise[node][t]


def _function(
    part: Part, rows: int, values: list[Tensor], options: Options
) -> Callable[[list[Tensor]], Sequence[Tensor]]:
    if options.compile:
        return part.compiled(rows, values)
    return lambda given: part(rows, given)


def run_forward(
    plan: Plan, options: Options, call: Sequence[Sequence[Tensor]], keep: bool
) -> tuple[list[Tensor], list[list[Tensor]], list[Tensor], Values]:
    """(outputs of every step, states of every step, the last state, all values). `keep`: for the derivative."""
    sequences, state, extras, trained, fixed = call
    ports, steps, rows = plan.step.ports, sequences[0].shape[0], sequences[0].shape[1]
    values = Values(plan, steps, rows)
    values.constant.update(zip([*ports.extras, *ports.trained, *ports.fixed], [*extras, *trained, *fixed], strict=True))
    values.stepwise.update(zip(ports.sequences, sequences, strict=True))
    values.stepwise.update(
        zip(ports.random, (_draw(one, steps, rows, sequences[0].device) for one in plan.step.draws), strict=True)
    )
    values.run_once(plan.once)
    ahead = plan.ahead if keep else plan.ahead_alone
    for node, value in zip(ahead.outputs, values.run_over_all_steps(ahead), strict=True):
        values.stepwise[node] = values.separated(node, value).contiguous()

    loop = plan.loop if keep else plan.loop_alone
    kept: dict[fx.Node, list[Any]] = {node: [None] * steps for node in (*loop.outputs, *ports.state)}
    values.stepwise.update(kept)
    order = range(steps)[::-1] if options.reverse else range(steps)
    current, function = [one.contiguous() for one in state], None
    outputs: list[Any] = [None] * steps
    states: list[Any] = [None] * steps
    for t in order:
        for node, value in zip(ports.state, current, strict=True):
            kept[node][t] = value
        if loop:
            given = [values.at(one, t) for one in loop.inputs]
            function = function or _function(loop, rows, given, options)
            for node, value in zip(loop.outputs, function(given), strict=True):
                kept[node][t] = value
        current = [values.at(one, t) for one in ports.new_state]
        outputs[t], states[t] = values.at(ports.output, t), current
    return outputs, states, current, values


def _draw(draw: Draw, steps: int, rows: int, device: torch.device) -> Tensor:
    sizes = [steps, *[rows if size is None else size for size in draw.sizes]]
    if draw.probability is not None:
        return torch.empty(sizes, dtype=draw.dtype, device=device).bernoulli_(draw.probability)
    draws = torch.randn if "randn" in str(draw.target) else torch.rand
    return draws(sizes, dtype=draw.dtype, device=device)


def run_backward(
    plan: Plan, options: Options, values: Values, d_outputs: Tensor, d_state: list[Tensor], d_states: list[Tensor]
) -> tuple[list[Tensor | None], list[Tensor | None], list[Tensor | None], list[Tensor | None]]:
    """The gradients of sequences, initial state, extras and trained parameters."""
    ports, steps, rows = plan.step.ports, values.steps, values.rows
    back = plan.back
    used_later = not set(plan.after.inputs).isdisjoint(ports.d_state)
    sums: dict[fx.Node, Tensor] = {}
    kept: dict[fx.Node, list[Any]] = {node: [None] * steps for node in (*back.outputs, *ports.d_state)}
    values.stepwise.update(kept)
    values.stepwise[ports.d_output] = d_outputs
    added = {one for one in (*plan.d_trained, *plan.d_extras) if one is not None and plan.zones.of[one] is Zone.BACK}
    current, function = [one.contiguous() for one in d_state], None
    for t in range(steps) if options.reverse else range(steps)[::-1]:
        if d_states:
            current = [one + all_steps[t] for one, all_steps in zip(current, d_states, strict=True)]
        for node, value in zip(ports.d_state, current, strict=True):
            kept[node][t] = value
        if back:
            given = [values.at(one, t) for one in back.inputs]
            function = function or _function(back, rows, given, options)
            for node, value in zip(back.outputs, function(given), strict=True):
                kept[node][t] = value
                if node in added:
                    sums[node] = sums[node] + value if node in sums else value
        current = [
            torch.zeros_like(old) if one is None else values.at(one, t)
            for one, old in zip(plan.d_old_state, current, strict=True)
        ]
        if not used_later:
            for node in ports.d_state:
                kept[node][t] = None
    after = dict(zip(plan.after.outputs, values.run_over_all_steps(plan.after), strict=True))

    def over_steps(node: fx.Node | None) -> Tensor | None:
        if node is None:
            return None
        if node in after:
            return values.separated(node, after[node])
        value = values.stepwise[node]
        return value if isinstance(value, Tensor) else torch.stack(list(value))

    def total(node: fx.Node | None) -> Tensor | None:
        if node is None:
            return None
        if node in sums:
            return sums[node]
        if node in after and not plan.has_rows(node):
            return after[node]
        every = over_steps(node)
        return None if every is None else every.sum(0)

    return (
        [over_steps(one) for one in plan.d_sequences],
        list(current),
        [total(one) for one in plan.d_extras],
        [total(one) for one in plan.d_trained],
    )


class Fused(torch.autograd.Function):
    """One call of a layer. Tensors: sequences, state, extras, trained and fixed parameters, in this order."""

    @staticmethod
    def forward(
        ctx: Any, plan: Plan, options: Options, counts: tuple[int, ...], *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        call = divided(tensors, counts)
        outputs, states, last, values = run_forward(plan, options, call, keep=True)
        used = {*plan.back.inputs, *plan.after.inputs}
        ctx.plan, ctx.options, ctx.counts = plan, options, counts
        ctx.shape = (values.steps, values.rows)
        saved: list[Any] = list(tensors)
        ctx.places = []
        for node, value in [*values.constant.items(), *values.stepwise.items()]:
            if node in used:
                several = [] if isinstance(value, Tensor) else list(value)
                ctx.places.append((node, node in values.constant, len(several) or None))
                saved += several or [value]
        ctx.save_for_backward(*saved)
        found = [torch.stack(outputs), *[one.clone() for one in last]]
        if options.states:
            found += [torch.stack(one) for one in zip(*states, strict=True)]
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        saved = list(ctx.saved_tensors)
        inputs, rest = saved[: sum(ctx.counts)], saved[sum(ctx.counts) :]
        if torch.is_grad_enabled():  # somebody wants the derivative of this derivative
            return (None, None, None, *derivative_by_loop(ctx.plan, ctx.options, ctx.counts, inputs, gradients))
        values = Values(ctx.plan, *ctx.shape)
        for node, is_constant, several in ctx.places:
            taken, rest = rest[: several or 1], rest[several or 1 :]
            if is_constant:
                values.constant[node] = taken[0]
            else:
                values.stepwise[node] = taken if several else taken[0]
        states = ctx.counts[1]
        d_outputs, d_last, d_all = gradients[0], list(gradients[1 : 1 + states]), list(gradients[1 + states :])
        with private.no_autocast(d_outputs.device.type):
            found = run_backward(ctx.plan, ctx.options, values, d_outputs.contiguous(), d_last, d_all)
        fixed = [None] * ctx.counts[4]
        return (None, None, None, *[gradient for group in found for gradient in group], *fixed)


def divided(tensors: Sequence[Tensor], counts: Sequence[int]) -> list[list[Tensor]]:
    found, left = [], list(tensors)
    for count in counts:
        found.append(left[:count])
        left = left[count:]
    return found


def derivative_by_loop(
    plan: Plan, options: Options, counts: tuple[int, ...], inputs: Sequence[Tensor], gradients: Sequence[Tensor]
) -> list[Tensor | None]:
    """The gradients of all inputs as functions that can be differentiated again."""
    if plan.step.draws:
        raise RuntimeError("a cell that draws random numbers cannot be differentiated twice: they would be drawn again")
    sequences, state, extras, trained, fixed = divided(inputs, counts)
    steps = sequences[0].shape[0]
    current: list[Tensor] = state
    outputs: list[Any] = [None] * steps
    states: list[Any] = [None] * steps
    with torch.enable_grad():
        for t in range(steps)[::-1] if options.reverse else range(steps):
            outputs[t], current = plan.joint.step(trained, fixed, [one[t] for one in sequences], current, extras)
            states[t] = current
        results = [torch.stack(outputs), *current]
        if options.states:
            results += [torch.stack(one) for one in zip(*states, strict=True)]
    wanted = [one for one in inputs if one.requires_grad]
    found = torch.autograd.grad(results, wanted, gradients, create_graph=True, allow_unused=True)
    by_input = dict(zip(map(id, wanted), found, strict=True))
    return [by_input.get(id(one)) for one in inputs]
