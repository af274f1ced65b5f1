"""A layer: a user's cell of one step, run over whole sequences."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from . import private
from .calling import Call, Held, flatten_call, held_by, initial_state, outside_inference_mode
from .fused import run_fused
from .links import Link
from .loop import run_loop
from .passes import Options
from .plan import Plan
from .tracing import Untraceable


class Recurrent(nn.Module):
    """Runs a cell over time: `ys, last = layer(xs)`.

    The cell is any module called as `cell(x, state) -> state` or `-> (output, state)`, for one step; the state is a
    tensor, or a tuple, list or dict of tensors. Its first tensor is the output where the cell returns no other.

        >>> class Cell(nn.Module):
        ...     def __init__(self, width, hidden):
        ...         super().__init__()
        ...         self.gates = nn.Linear(width + hidden, 2 * hidden)
        ...     def initial_state(self, x):
        ...         return x.new_zeros(x.shape[0], self.gates.out_features // 2)
        ...     def forward(self, x, h):
        ...         z, n = self.gates(torch.cat([x, h], 1)).chunk(2, 1)
        ...         return torch.lerp(torch.tanh(n), h, torch.sigmoid(z))
        >>> layer = Recurrent(Cell(3, 4))
        >>> ys, last = layer(torch.randn(7, 2, 3))
        >>> ys.shape, last.shape
        (torch.Size([7, 2, 4]), torch.Size([2, 4]))

    What the layer computes is what this loop computes, with all its derivatives:

        for t in range(steps): state = cell(xs[t], state)

    At the first call the step is traced and taken apart; `explain()` says how. A step that cannot be traced runs as
    that loop, with one warning that says why. Its parameters are the cell's own: `layer.state_dict()` has their names,
    after `cell.`.
    """

    def __init__(
        self,
        cell: nn.Module,
        *,
        reverse: bool = False,
        batch_first: bool = False,
        compile: bool = True,
        check: bool = False,
        recompute: bool = False,
        persistent: bool | None = None,
        replay: bool = True,
    ) -> None:
        """`reverse`: from the last step to the first. `check`: compare the first call with the plain loop.
        `recompute`: keep the states of a few steps only and compute the rest again for gradients, which takes less
        memory and more time. `persistent`: whether, on a GPU, the loop runs as one kernel with its weights on the
        chip; None: if it is faster, which is measured once for a cell, a batch size and a GPU, in about ten seconds.
        `replay`: whether, on a GPU, calls of up to 128 steps that come again become CUDA graphs, which takes memory."""
        super().__init__()
        if not isinstance(cell, nn.Module):
            raise TypeError(f"a cell must be a torch.nn.Module, not {type(cell).__name__}")
        self.cell = cell
        self.reverse = reverse
        self.batch_first = batch_first
        self._compiles = compile  # not `compile`: that is a method of every module
        self.check = check
        self.recompute = recompute
        self.persistent = persistent
        self.replay = replay
        self._forget_plans()

    def _forget_plans(self) -> None:
        self._plans: dict[tuple[Any, ...], Plan | str] = {}  # a plan, or why there is none
        self._beginnings: dict[tuple[Any, ...], bool] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Plans are made again where they are needed: they do not travel."""
        return {**self.__dict__, "_plans": {}, "_beginnings": {}}

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(
        self,
        xs: Tensor,
        state: Any = None,
        lengths: Tensor | None = None,
        *,
        states: bool = False,
        **extras: Any,
    ) -> Any:
        """(outputs, last state), and with `states` all states as well.

        `xs`: [steps, batch, …], or [batch, steps, …] if `batch_first`. `lengths`: [batch]; beyond the end of a sequence
        its outputs are zero and its state stays. `extras`: tensors that every step gets, one row for each sequence.
        """
        call = self._flat_call(xs, state, lengths, extras)
        held = held_by(self.cell)
        plan = self._plan(call, held)
        if isinstance(plan, Plan):
            link, tensors = self._link(plan, call, held, states)
            found = run_fused([link], tensors)
            count = len(call.state)
            outputs, last, all_states = found[0], found[1 : 1 + count], found[1 + count :]
            if self.check:
                self.check = False
                self._compare_with_loop(call, outputs, last)
        else:
            outputs, last, all_states = run_loop(self.cell, call, self.reverse)
        if self.batch_first:
            outputs = outputs.transpose(0, 1)
            all_states = [one.transpose(0, 1) for one in all_states]
        last_state = private.unflatten(last, call.state_structure)
        if states:
            return outputs, last_state, private.unflatten(all_states, call.state_structure)
        return outputs, last_state

    def explain(self) -> str:
        """What of the step runs once, ahead of the loop, in it and after it, and why something stays in it."""
        if not self._plans:
            return "nothing is known before the first call"
        return "\n\n".join(
            plan.explain() if isinstance(plan, Plan) else f"runs as a plain loop: {plan}"
            for plan in self._plans.values()
        )

    @property
    def compilations(self) -> int:
        """How often a part of a step was compiled: twice for a batch size that is trained with."""
        plans = [plan for plan in self._plans.values() if isinstance(plan, Plan)]
        return sum(part.compilations for plan in plans for part in (plan.loop, plan.loop_alone, plan.back))

    def link_of_chain(
        self, xs: Tensor, state: Any, lengths: Tensor | None, extras: dict[str, Any], is_first: bool
    ) -> tuple[Link, list[Tensor], Any, Tensor] | None:
        """This layer as one of several that run at once: also the structure of its state, and what its outputs will be
        like. None if it cannot: it runs as a loop, or it begins with something that depends on its input.

        Above the first layer, `xs` has the shape and type of the input, and no values.
        """
        if self.check or self.reverse or self.recompute:
            return None
        if not is_first and state is None and not self._begins_alone(xs[0]):
            return None
        call = self._flat_call(xs, state, lengths, extras)
        held = held_by(self.cell)
        plan = self._plan(call, held)
        if not isinstance(plan, Plan) or not plan.hands_on_its_outputs:
            return None
        link, tensors = self._link(plan, call, held, False, is_first)
        output = plan.step.ports.output
        shape = (xs.shape[0], *plan.shape(output, xs.shape[1]))
        like = torch.zeros((), dtype=plan.dtype(output), device=xs.device).expand(shape)
        return link, tensors, call.state_structure, like

    def _begins_alone(self, x: Tensor) -> bool:
        """Whether the initial state depends on nothing but the shape and type of the input."""
        key = (tuple(x.shape), x.dtype, x.device)
        if key not in self._beginnings:
            others = torch.linspace(-1, 1, x.numel(), device=x.device).to(x.dtype).view(x.shape)
            with torch.no_grad(), torch.random.fork_rng([x.device] if x.is_cuda else []):
                found = [private.flatten(initial_state(self.cell, one))[0] for one in (x.contiguous(), others)]
            self._beginnings[key] = all(torch.equal(*pair) for pair in zip(*found, strict=True))
        return self._beginnings[key]

    # --- one call ---

    def _flat_call(self, xs: Tensor, state: Any, lengths: Tensor | None, extras: dict[str, Any]) -> Call:
        if not isinstance(xs, Tensor) or xs.dim() < 2:
            raise ValueError("the input must be a tensor [steps, batch, …]")
        xs = xs.transpose(0, 1) if self.batch_first else xs
        steps, batch = xs.shape[:2]
        if steps == 0:
            raise ValueError("a sequence needs at least one step")
        inside = None
        if lengths is not None:
            if lengths.shape != (batch,):
                raise ValueError(f"lengths must have the shape ({batch},), not {tuple(lengths.shape)}")
            positions = torch.arange(steps, device=xs.device)
            inside = positions[:, None] < lengths.to(xs.device)[None, :]
        if state is None:
            state = initial_state(self.cell, xs[0])
        return flatten_call(xs, state, extras, inside)

    def _plan(self, call: Call, held: Held) -> Plan | str:
        reason = _obstacle(call, held)
        if reason:
            return reason
        key = _key(call, held)
        if key not in self._plans:
            try:
                self._plans[key] = private.without_hooks(partial(self._make_plan, call, held), call.xs.device.type)
            except Untraceable as error:
                self._plans[key] = str(error)
                warnings.warn(
                    f"{type(self.cell).__name__} runs as a plain loop over time: {error}", RuntimeWarning, stacklevel=4
                )
        return self._plans[key]

    def _make_plan(self, call: Call, held: Held) -> Plan:
        devices = [call.xs.device] if call.xs.is_cuda else []
        # Making a plan runs the cell, which may draw random numbers: the user's are not touched. And what inference
        # mode makes has no derivative, while a plan outlives it.
        with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng(devices):
            return Plan(self.cell, held, outside_inference_mode(call))

    def _link(
        self, plan: Plan, call: Call, held: Held, states: bool, is_first: bool = True
    ) -> tuple[Link, list[Tensor]]:
        """This layer as one of a chain, and its tensors. Above the first, the layer below gives the input."""
        groups = [
            [one.contiguous() for one in call.sequences[0 if is_first else 1 :]],
            call.state,
            call.extras,
            list(held.trained.values()),
            list(held.fixed.values()),
        ]
        sequences, state, extras, trained, fixed = map(len, groups)
        options = Options(self.reverse, self._compiles, self.persistent, states, self.recompute, self.replay)
        return Link(plan, options, (sequences, state, extras, trained, fixed)), [one for some in groups for one in some]

    def _compare_with_loop(self, call: Call, outputs: Tensor, last: list[Tensor]) -> None:
        with torch.no_grad():
            expected, expected_last, _ = run_loop(self.cell, call, self.reverse)
        for what, found, wanted in (("outputs", outputs, expected), ("the last state", last[0], expected_last[0])):
            difference = float((found - wanted).abs().max())
            size = float(wanted.abs().max()) or 1.0
            tolerance = 100 * torch.finfo(wanted.dtype).eps * call.xs.shape[0] ** 0.5
            if not difference <= tolerance * size:
                raise RuntimeError(
                    f"{what} differ from those of the plain loop by {difference / size:.1e}; this is a fault of rnnfuse"
                )


def _obstacle(call: Call, held: Held) -> str:
    """Why this call runs as a plain loop, whatever the cell is."""
    if private.missing():
        return private.missing()
    if call.xs.shape[1] == 0:
        return "the batch is empty"
    if private.is_transformed():
        return "inside a transform of torch.func"
    if any(private.has_hooks(module) for module in held.modules):
        return "the cell has hooks, which run at every step"
    if private.is_forward_mode():
        inputs = [*call.sequences, *call.state, *call.extras, *held.trained.values(), *held.fixed.values()]
        if any(private.has_tangent(one) for one in inputs):
            return "in forward-mode differentiation"
    return ""


def _key(call: Call, held: Held) -> tuple[Any, ...]:
    """What a plan depends on."""
    tensors = [*call.state, *call.extras]
    batch = call.xs.shape[1]
    kinds = tuple((one.shape[one.dim() > 0 and one.shape[0] == batch :], one.dtype, one.device) for one in tensors)
    settings = tuple(_settings(module) for module in held.modules)
    parameters = tuple((one.dtype, one.device) for one in (*held.trained.values(), *held.fixed.values()))
    cast = private.autocast_key(call.xs.device.type)
    return (
        call.xs.shape[2:], call.xs.dtype, call.xs.device, call.inside is None, str(call.state_structure),
        str(call.extras_structure), kinds, settings, tuple(held.trained), parameters, cast, torch.get_default_dtype(),
    )  # fmt: skip


_PLAIN = (bool, int, float, str, type(None), tuple, torch.dtype)


def _settings(module: nn.Module) -> tuple[Any, ...]:
    """The plain attributes of a module, whether it trains among them: a step is traced again when one has changed."""
    return tuple((name, repr(value)) for name, value in vars(module).items() if isinstance(value, _PLAIN))
