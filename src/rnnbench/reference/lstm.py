"""One LSTM layer in one direction: its forward pass, and its backward pass through time.

Arrays are time-major: `[steps, batch, width]`. The gates are i, f, g, o = x@w + h@u + b, with sigmoid, sigmoid,
tanh and sigmoid applied. One step is c' = f·c + i·g and h' = o·tanh(c'). The initial state is zero.
"""

from typing import NamedTuple

import numpy as np

from rnnbench.reference.inputs import Booleans, Floats

_OVER_TIME_AND_BATCH = ((0, 1), (0, 1))


class Trace(NamedTuple):
    """What the backward pass needs from the forward pass, in the order in which the steps were run."""

    x: Floats
    w: Floats
    u: Floats
    valid: Floats  # [steps, batch, 1]: 1 if the sequence has this step, 0 beyond its end
    gates: Floats  # [steps, batch, 4·hidden], after sigmoid and tanh
    cells: Floats  # [steps + 1, batch, hidden]: the initial state, then the state after each step
    hiddens: Floats
    reverse: bool


class Gradients(NamedTuple):
    x: Floats
    w: Floats
    u: Floats
    b: Floats


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)), written so that the exponential never overflows."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def forward(
    x: Floats, w: Floats, u: Floats, b: Floats, mask: Booleans | None = None, reverse: bool = False
) -> tuple[Floats, Trace]:
    """The outputs `[steps, batch, hidden]`, and the trace for `backward`.

    `mask [steps, batch]` says which steps a sequence has. The others keep its state and have output zero,
    so that the backward direction starts at the last step of each sequence with a zero state.
    """
    steps, batch, _ = x.shape
    hidden = len(u)
    valid = np.ones((steps, batch, 1)) if mask is None else mask[..., None].astype(np.float64)
    if reverse:
        x, valid = x[::-1], valid[::-1]

    # The product with the inputs is one for all steps; only the product with the state needs the loop.
    gates = np.tensordot(x, w, axes=1) + b
    cells = np.zeros((steps + 1, batch, hidden))
    hiddens = np.zeros((steps + 1, batch, hidden))
    for t in range(steps):
        gates[t] += hiddens[t] @ u
        i, f, g, o = np.split(gates[t], 4, axis=1)  # views: the gates are changed in place
        i[:], f[:], g[:], o[:] = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        cell = f * cells[t] + i * g
        cells[t + 1] = np.where(valid[t], cell, cells[t])
        hiddens[t + 1] = np.where(valid[t], o * np.tanh(cell), hiddens[t])

    outputs = hiddens[1:] * valid
    trace = Trace(x, w, u, valid, gates, cells, hiddens, reverse)
    return (outputs[::-1] if reverse else outputs), trace


def backward(trace: Trace, d_outputs: Floats) -> Gradients:
    """The gradients of a loss whose gradient with respect to the outputs is `d_outputs`."""
    if trace.reverse:
        d_outputs = d_outputs[::-1]
    d_gates = np.empty_like(trace.gates)  # with respect to the gates before sigmoid and tanh
    d_hidden = np.zeros_like(trace.hiddens[0])
    d_cell = np.zeros_like(trace.cells[0])
    for t in reversed(range(len(trace.x))):
        i, f, g, o = np.split(trace.gates[t], 4, axis=1)
        di, df, dg, do = np.split(d_gates[t], 4, axis=1)
        tanh_cell = np.tanh(trace.cells[t + 1])
        # The gradients go through a valid step, and skip the others unchanged.
        valid, skipped = trace.valid[t], 1 - trace.valid[t]
        through_hidden = valid * (d_outputs[t] + d_hidden)
        through_cell = valid * d_cell + through_hidden * o * (1 - tanh_cell**2)
        di[:] = through_cell * g * i * (1 - i)
        df[:] = through_cell * trace.cells[t] * f * (1 - f)
        dg[:] = through_cell * i * (1 - g**2)
        do[:] = through_hidden * tanh_cell * o * (1 - o)
        d_hidden = d_gates[t] @ trace.u.T + skipped * d_hidden
        d_cell = through_cell * f + skipped * d_cell

    d_x = np.tensordot(d_gates, trace.w.T, axes=1)
    return Gradients(
        x=d_x[::-1] if trace.reverse else d_x,
        w=np.tensordot(trace.x, d_gates, axes=_OVER_TIME_AND_BATCH),
        u=np.tensordot(trace.hiddens[:-1], d_gates, axes=_OVER_TIME_AND_BATCH),
        b=d_gates.sum(axis=(0, 1)),
    )
