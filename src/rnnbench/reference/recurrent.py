"""One layer of any cell in one direction: its forward pass, and its backward pass through time, step by step.

Arrays are time-major: `[steps, batch, width]`. The initial state is zero. The LSTM has a quicker version of its own
(`lstm.py`), which gives the same numbers.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import NamedTuple

import numpy as np

from rnnbench.reference.inputs import Booleans, Floats
from rnnbench.reference.tape import Operators, Value, run_backwards

State = dict[str, Value]


class Step(NamedTuple):
    x: Value
    old: State
    new: State
    valid: Floats  # [batch, 1]


class Trace(NamedTuple):
    """What the backward pass needs, in the order in which the steps were run."""

    weights: dict[str, Value]
    steps: list[Step]
    output: str
    reverse: bool


def forward(
    cell: ModuleType,
    weights: Mapping[str, Floats],
    x: Floats,
    mask: Booleans | None = None,
    reverse: bool = False,
    *,
    hidden: int,
) -> tuple[Floats, Trace]:
    """The outputs `[steps, batch, hidden]`, and the trace for `backward`. `mask`: see `lstm.forward`."""
    steps, batch, _ = x.shape
    valid = np.ones((steps, batch, 1)) if mask is None else mask[..., None].astype(np.float64)
    known = {name: Value(array) for name, array in weights.items()}
    state = {name: np.zeros((batch, hidden)) for name in cell.STATES}
    outputs = np.zeros((steps, batch, hidden))
    trace: list[Step] = []
    for t in reversed(range(steps)) if reverse else range(steps):
        old = {name: Value(array) for name, array in state.items()}
        inputs = Value(x[t])
        new = cell.step(Operators, known, inputs, old)
        state = {name: np.where(valid[t], new[name].array, state[name]) for name in cell.STATES}
        outputs[t] = state[cell.STATES[0]] * valid[t]
        trace.append(Step(inputs, old, new, valid[t]))
    return outputs, Trace(known, trace, cell.STATES[0], reverse)


def backward(trace: Trace, d_outputs: Floats) -> tuple[Floats, dict[str, Floats]]:
    """The gradients of the inputs and of the weights, of a loss with these gradients of the outputs."""
    d_inputs = np.zeros((len(d_outputs), *trace.steps[0].x.array.shape))
    d_state = {name: np.zeros_like(value.array) for name, value in trace.steps[0].old.items()}
    times = range(len(trace.steps))
    for t, step in zip(times if trace.reverse else reversed(times), reversed(trace.steps), strict=True):
        # The gradients go through a valid step, and skip the others unchanged.
        skipped = {name: d * (1 - step.valid) for name, d in d_state.items()}
        through = {name: d * step.valid for name, d in d_state.items()}
        through[trace.output] = through[trace.output] + d_outputs[t] * step.valid
        run_backwards([(step.new[name], d) for name, d in through.items()])
        d_inputs[t] = _gradient(step.x)
        d_state = {name: _gradient(value) + skipped[name] for name, value in step.old.items()}
    return d_inputs, {name: _gradient(value) for name, value in trace.weights.items()}


def _gradient(value: Value) -> Floats:
    return np.zeros_like(value.array) if value.gradient is None else value.gradient
