"""What each ability must compute, in float64: one layer, its outputs, and the gradients of its weights.

The loss is the sum of all outputs times fixed numbers (`probe_h`), so that every output has its own gradient.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rnnbench_cells
from rnnbench.reference.inputs import Floats
from rnnbench.reference.tape import Operators, Value, run_backwards

#: All different, so that a transposed or exchanged matrix cannot fit by chance. They are those of a small `ce-short`.
BATCH, STEPS, WIDTH, HIDDEN, SLOTS = 5, 6, 9, 12, 4
OTHER_STEPS = 9
RATE = 0.5  # of dropout

Arrays = dict[str, NDArray[np.float32]]
Weights = Mapping[str, Value]
#: (weights, input, flag, h, c, extra) -> (h, c)
Step = Callable[[Weights, Value, Floats, Value, Value, Floats], tuple[Value, Value]]


def make_inputs(seed: int = 0) -> Arrays:
    """The arrays that every program is given; each uses some of them."""
    generator = np.random.default_rng(seed)

    def uniform(*shape: int) -> Floats:
        return generator.uniform(-0.7, 0.7, shape)

    lengths = np.array([6, 2, 5, 3, 4])
    inside = (np.arange(STEPS)[:, None] < lengths[None, :])[:, :, None].astype(np.float64)
    probe = uniform(OTHER_STEPS, BATCH, HIDDEN)
    # After its end a sequence keeps its state, which is looked at in the last step: outputs would not show lengths.
    looked_at = inside.copy()
    looked_at[-1] = 1.0
    # No reset at the first step, where the state is zero; each sequence has one at another step, the last has two.
    reset = np.zeros((STEPS, BATCH, 1))
    for sequence in range(BATCH):
        reset[sequence + 1, sequence] = 1.0
    reset[2, BATCH - 1] = 1.0
    gates = 4 * HIDDEN
    arrays = {
        "w": uniform(WIDTH, gates), "u": uniform(HIDDEN, gates), "b": uniform(gates), "p": uniform(3 * HIDDEN),
        "gain_x": 1 + uniform(gates), "gain_h": 1 + uniform(gates), "gain_c": 1 + uniform(HIDDEN),
        "b_c": uniform(HIDDEN), "head": uniform(HIDDEN, WIDTH), "w_wide": uniform(WIDTH + HIDDEN, gates),
        "xs": uniform(OTHER_STEPS, BATCH, WIDTH), "reset": reset, "inside": inside,
        "mask": (generator.random((BATCH, HIDDEN)) > RATE) / (1 - RATE), "memory": uniform(BATCH, SLOTS, HIDDEN),
        "probe_h": probe, "probe_c": uniform(STEPS, BATCH, HIDDEN), "probe_inside": probe[:STEPS] * looked_at,
        "looked_at": looked_at,
    }  # fmt: skip
    found: Arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    return {**found, "lengths": lengths.astype(np.int32)}


# --- steps ----------------------------------------------------------------------------------------------


def _cell(name: str) -> Step:
    cell = rnnbench_cells.find(name)

    def step(weights: Weights, x: Value, flag: Floats, h: Value, c: Value, extra: Floats) -> tuple[Value, Value]:
        new = cell.step(Operators, weights, x, {"h": h, "c": c})
        return new["h"], new["c"]

    return step


_lstm = _cell("lstm")


def _dropped(weights: Weights, x: Value, flag: Floats, h: Value, c: Value, extra: Floats) -> tuple[Value, Value]:
    """`extra` is the mask [batch, hidden], or one for each gate: [4, batch, hidden]."""
    masks = extra if extra.ndim == 3 else np.stack([extra] * 4)
    pieces = zip(masks, Operators.split(weights["u"], 4), strict=True)
    from_h = Operators.concat([Operators.matmul(h * Value(mask), piece) for mask, piece in pieces])
    i, f, g, o = Operators.split(Operators.matmul(x, weights["w"]) + from_h + weights["b"], 4)
    new_c = Operators.sigmoid(f) * c + Operators.sigmoid(i) * Operators.tanh(g)
    return Operators.sigmoid(o) * Operators.tanh(new_c), new_c


def _within(weights: Weights, x: Value, flag: Floats, h: Value, c: Value, extra: Floats) -> tuple[Value, Value]:
    new_h, new_c = _lstm(weights, x, flag, h, c, extra)
    inside, outside = Value(flag), Value(1 - flag)
    return new_h * inside + h * outside, new_c * inside + c * outside


def _reset(weights: Weights, x: Value, flag: Floats, h: Value, c: Value, extra: Floats) -> tuple[Value, Value]:
    kept = Value(1 - flag)
    return _lstm(weights, x, flag, h * kept, c * kept, extra)


def _fed_back(weights: Weights, x: Value, flag: Floats, h: Value, c: Value, extra: Floats) -> tuple[Value, Value]:
    return _lstm(weights, x + Operators.matmul(h, weights["head"]), flag, h, c, extra)


def _attending(weights: Weights, x: Value, flag: Floats, h: Value, c: Value, extra: Floats) -> tuple[Value, Value]:
    return _lstm(weights, Operators.concat([x, attend(h, extra)]), flag, h, c, extra)


def attend(query: Value, memory: Floats) -> Value:
    """The mean of the memory's slots, weighted by the softmax of their products with the query."""
    scores = np.einsum("bsh,bh->bs", memory, query.array)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares = powers / powers.sum(axis=1, keepdims=True)

    def pull_back(d: Floats) -> list[Floats]:
        d_shares = np.einsum("bh,bsh->bs", d, memory)
        d_scores = shares * (d_shares - (d_shares * shares).sum(axis=1, keepdims=True))
        return [np.einsum("bs,bsh->bh", d_scores, memory)]

    return Value(np.einsum("bs,bsh->bh", shares, memory), (query,), pull_back)


class Task(NamedTuple):
    """An ability's step, the weights that it has beside u and b, and which arrays it is given."""

    step: Step = _lstm
    weights: Mapping[str, str] = {"w": "w"}  # names in the step -> names of the inputs
    flags: str = ""
    extra: str = ""
    probe: str = "probe_h"
    states: bool = False  # whether the cell states are outputs, too
    steps: int = STEPS


_NORMS = {name: name for name in ("gain_x", "gain_h", "gain_c", "b_c")}
TASKS: dict[str, Task] = {
    "own-cell": Task(_cell("peephole"), {"w": "w", "p": "p"}),
    "normalisation": Task(_cell("layernorm-lstm"), {"w": "w", **_NORMS}),
    "recurrent-dropout": Task(_dropped, extra="mask"),
    "all-states": Task(states=True),
    "variable-lengths": Task(_within, flags="inside", probe="probe_inside"),
    "reset": Task(_reset, flags="reset"),
    "double-backward": Task(),
    "feedback": Task(_fed_back, {"w": "w", "head": "head"}),
    "attention": Task(_attending, {"w": "w_wide"}, extra="memory"),
    "other-steps": Task(steps=OTHER_STEPS),
}


# --- what must come out -----------------------------------------------------------------------------------


def expected_arrays(ability: str, inputs: Arrays) -> dict[str, Floats]:
    """`h`, `c` where the cell states are asked for, and `gradient/…` of every weight.

    Of double backward only the gradients, here of the sum of squares of the loss's gradient of the inputs.
    """
    task = TASKS[ability]
    xs = inputs["xs"][: task.steps].astype(np.float64)
    computed = _run(task, inputs, xs)
    if ability != "double-backward":
        hidden = {"h": computed.h, "c": computed.c} if task.states else {"h": computed.h}
        return {**hidden, **_named(computed.gradients)}
    # dS/dw = 2 d/de of the gradient of w at xs + e g, where g is the gradient of the inputs and S = sum of g².
    step = 1e-4
    ahead, behind = (_run(task, inputs, xs + sign * step * computed.xs).gradients for sign in (1, -1))
    return _named({name: (ahead[name] - behind[name]) / step for name in ahead})


def _named(gradients: Mapping[str, Floats]) -> dict[str, Floats]:
    return {f"gradient/{name}": array for name, array in gradients.items()}


class _Computed(NamedTuple):
    h: Floats
    c: Floats
    gradients: dict[str, Floats]
    xs: Floats  # the gradient of the inputs


def _run(task: Task, inputs: Arrays, xs: Floats) -> _Computed:
    batch = xs.shape[1]
    names = {**task.weights, "u": "u", "b": "b"}
    weights = {name: Value(inputs[source].astype(np.float64)) for name, source in names.items()}
    flags = inputs[task.flags].astype(np.float64) if task.flags else np.zeros((len(xs), batch, 1))
    extra = inputs[task.extra].astype(np.float64) if task.extra else np.zeros((batch, 1))
    probe = inputs[task.probe].astype(np.float64)
    h, c = Value(np.zeros((batch, HIDDEN))), Value(np.zeros((batch, HIDDEN)))
    ends: list[tuple[Value, Floats]] = []
    given = [Value(x) for x in xs]
    hs, cs = [], []
    for t, x in enumerate(given):
        h, c = task.step(weights, x, flags[t], h, c, extra)
        hs.append(h.array)
        cs.append(c.array)
        ends.append((h, probe[t]))
        if task.states:
            ends.append((c, inputs["probe_c"][t].astype(np.float64)))
    run_backwards(ends)
    gradients = {name: _gradient(value) for name, value in weights.items()}
    return _Computed(np.stack(hs), np.stack(cs), gradients, np.stack([_gradient(x) for x in given]))


def _gradient(value: Value) -> Floats:
    return np.zeros_like(value.array) if value.gradient is None else value.gradient


def is_dropout_mask(mask: NDArray[Any]) -> bool:
    """Whether a layer could have drawn it for itself: ones and zeros, scaled, and another for each sequence."""
    if mask.shape not in ((BATCH, HIDDEN), (4, BATCH, HIDDEN)):
        return False
    kept = mask > 0
    expected = kept / (1 - RATE)
    differ = (kept != np.roll(kept, 1, axis=-2)).any(axis=-1)
    return bool(np.allclose(mask, expected) and kept.any() and not kept.all() and differ.all())
