"""The whole network as pure functions of parameters and batch: embedding or features, recurrent stack, head, loss.

Time is the first axis inside: `[steps, batch, width]`. Parameters have their canonical names, except that all those
of the recurrent layers are under "stack", in the stack's own layout.

A stack is a pure function, `stack(weights, xs, lengths)`, with `xs [steps, batch, width]`, that returns
`[steps, batch, hidden × directions]`; `lengths` is None where all are the same. `from_canonical(arrays)` returns its
weights, `to_canonical(weights, join)` the canonical arrays of weights on the host. `join` makes one bias of two, where
there are two.

A cell computes one time step, called as `h, c = cell(weights, x, (h, c))`. It holds no numbers, only what a step is
and the layout of its weights: `from_canonical` takes the canonical `w [in,4H]`, `u [H,4H]`, `b [4H]` of a layer in one
direction, `to_canonical` returns them.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import rnn
from jax.experimental.layout import Layout, with_layout_constraint
from jax.nn import sigmoid

import rnnbench_cells
from rnnbench_worker.canonical import (
    is_stack_parameter,
    join_gates,
    layer_directions,
    split_gates,
    step_mask,
    weight_names,
)


class Network(object):
    """What is fixed before any number is known. It never changes."""

    def __init__(self, workload, stack, product):
        self._workload = workload
        self._stack = stack
        self._product = product

    def logits(self, parameters, batch):
        """`[steps, batch, classes]`, or `[batch, classes]`."""
        workload = self._workload
        xs = jnp.swapaxes(batch["inputs"], 0, 1)
        if workload["vocabulary"]:
            xs = parameters["embedding"][xs]
        hs = self._stack(parameters["stack"], xs, batch["lengths"] if workload["variable_length"] else None)
        if workload["head_on"] == "last-step":
            hs = hs[-1]
        logits = self._product(hs, parameters["head.w"])
        return logits + parameters["head.b"] if workload["head_bias"] else logits

    def loss(self, parameters, batch):
        """In fp32 whatever the precision: mean cross-entropy, or CTC as a mean over sequences."""
        logits = self.logits(parameters, batch).astype(jnp.float32)
        targets = batch["targets"]
        if self._workload["loss"] == "ctc":
            # Optax selects the labels' log-probabilities by a product with ones and zeros: TF32 would round them.
            with jax.default_matmul_precision("highest"):
                return ctc(logits, batch["lengths"], targets).mean()
        if logits.ndim == 3:
            targets = targets.T
        return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

    def from_canonical(self, arrays):
        """The parameters, from canonical arrays."""
        parameters = {name: array for name, array in arrays.items() if not is_stack_parameter(name)}
        parameters["stack"] = self._stack.from_canonical(arrays)
        return parameters

    def to_canonical(self, parameters, join):
        """Canonical arrays, from parameters on the host."""
        arrays = {name: value for name, value in parameters.items() if name != "stack"}
        arrays.update(self._stack.to_canonical(parameters["stack"], join))
        return arrays


def ctc(logits, lengths, labels):
    """The CTC loss of each sequence. All labels count; time steps after the end of a sequence are padding."""
    padding = jnp.where(step_mask(jnp.arange(logits.shape[0]), lengths), 0.0, 1.0)
    return optax.ctc_loss(
        jnp.swapaxes(logits, 0, 1), jnp.swapaxes(padding[:, :, 0], 0, 1), labels, jnp.zeros(labels.shape), blank_id=0
    )


# --- stacks -------------------------------------------------------------------------------------------


class LoopStack(object):
    """A loop over time around any cell. The outer loop runs over depth, the inner one over time."""

    def __init__(self, workload, cell, loop):
        self._workload = workload
        self._cell = cell
        self._loop = loop

    def __call__(self, weights, xs, lengths):
        mask = None if lengths is None else step_mask(jnp.arange(xs.shape[0]), lengths)
        remaining = iter(weights)
        for _ in range(self._workload["layers"]):
            outputs = [
                self._direction(next(remaining), xs, mask, direction == "bwd")
                for direction in self._workload["directions"]
            ]
            xs = outputs[0] if len(outputs) == 1 else jnp.concatenate(outputs, axis=2)
        return xs

    def _direction(self, weights, xs, mask, reverse):
        """One layer in one direction."""

        def step(state, slices):
            x, inside = slices
            new = self._cell(weights, x, state)
            if inside is None:
                return new, new[0]
            # Outside a sequence the state is kept, so that the backward direction starts at the sequence's own end.
            kept = tuple(jnp.where(inside, one, old) for one, old in zip(new, state))
            return kept, jnp.where(inside, kept[0], 0.0)

        zeros = jnp.zeros((xs.shape[1], self._workload["hidden"]), jnp.float32)
        return self._loop(step, (zeros,) * self._cell.states, (xs, mask), reverse)

    def from_canonical(self, arrays):
        return [
            self._cell.from_canonical(*[arrays[name] for name in self._names(place)])
            for place in layer_directions(self._workload)
        ]

    def to_canonical(self, weights, join):
        arrays = {}
        for place, cell_weights in zip(layer_directions(self._workload), weights):
            arrays.update(zip(self._names(place), self._cell.to_canonical(cell_weights)))
        return arrays

    def _names(self, place):
        return weight_names(*place, parts=self._workload["weights"])


# --- cells --------------------------------------------------------------------------------------------


class FineCell(object):
    """One weight per gate: eight products per step."""

    states = 2

    def __init__(self, product):
        self._product = product

    def __call__(self, weights, x, state):
        h, c = state
        return advance([self._product(x, w) + self._product(h, u) + b for w, u, b in zip(*weights)], c)

    def from_canonical(self, w, u, b):
        return [split_gates(array) for array in (w, u, b)]

    def to_canonical(self, weights):
        return [join_gates(parts) for parts in weights]


class PackedCell(object):
    """The four gates in one matrix: two products per step."""

    states = 2

    def __init__(self, product):
        self._product = product

    def __call__(self, weights, x, state):
        h, c = state
        w, u, b = weights
        return advance(jnp.split(self._product(x, w) + self._product(h, u) + b, 4, axis=1), c)

    def from_canonical(self, w, u, b):
        return [w, u, b]

    def to_canonical(self, weights):
        return weights


def advance(gates, c):
    """The new state (h, c), from the gates i, f, g, o before their nonlinearities."""
    i, f, g, o = gates
    c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
    h = sigmoid(o) * jnp.tanh(c)
    return h, c


CELLS = {"fine": FineCell, "packed": PackedCell}


class AnyCell(object):
    """A cell of rnnbench_cells, as its file says."""

    def __init__(self, name, product):
        self._cell = rnnbench_cells.find(name)
        self._names = list(self._cell.parameters(1, 1))
        self._operators = Operators(product)
        self.states = len(self._cell.STATES)

    def __call__(self, weights, x, state):
        named = dict(zip(self._names, weights))
        new = self._cell.step(self._operators, named, x, dict(zip(self._cell.STATES, state)))
        return tuple(new[name] for name in self._cell.STATES)

    def from_canonical(self, *weights):
        return list(weights)

    def to_canonical(self, weights):
        return weights


class Operators(object):
    """The vocabulary of rnnbench_cells."""

    def __init__(self, product):
        self.matmul = product
        self.sigmoid, self.tanh, self.relu, self.softplus = sigmoid, jnp.tanh, jax.nn.relu, jax.nn.softplus
        self.exp, self.log, self.maximum, self.minimum = jnp.exp, jnp.log, jnp.maximum, jnp.minimum
        self.constant = jax.lax.stop_gradient

    @staticmethod
    def split(a, count):
        return jnp.split(a, count, axis=-1)

    @staticmethod
    def concat(pieces):
        return jnp.concatenate(pieces, axis=-1)

    @staticmethod
    def layer_norm(a, gain, bias):
        return jax.nn.standardize(a, axis=-1, epsilon=rnnbench_cells.EPSILON) * gain + bias


def cell_for(workload, granularity, product):
    """The LSTM is written out in two granularities; every other cell is as its file says."""
    return CELLS[granularity](product) if workload["cell"] == "lstm" else AnyCell(workload["cell"], product)


# --- cuDNN --------------------------------------------------------------------------------------------


def row_major(array):
    """An array that lies in memory in the order of its axes, and so does its gradient.

    cuDNN's call relies on that without asking for it, and XLA prefers to transpose by relabelling axes: the numbers
    would be read in the wrong order (docs/findings.md).
    """
    return with_layout_constraint(array, Layout(major_to_minor=tuple(range(array.ndim))))


class CudnnStack(object):
    """cuDNN's LSTM through jax.experimental.rnn: all layers, directions and steps in one call, only on CUDA.

    Its weights are one flat array: W_ih `[4H,in]` and W_hh `[4H,H]` of every layer and direction, followed by the two
    biases of each. The process's default precision decides whether it may use TF32.
    """

    def __init__(self, workload):
        self._workload = workload
        self._shape = {
            "input_size": workload["input_width"],
            "hidden_size": workload["hidden"],
            "num_layers": workload["layers"],
            "bidirectional": len(workload["directions"]) == 2,
        }

    def __call__(self, weights, xs, lengths):
        steps, batch = xs.shape[:2]
        if lengths is None:
            lengths = jnp.full(batch, steps, jnp.int32)
        zeros = jnp.zeros((len(layer_directions(self._workload)), batch, self._workload["hidden"]), jnp.float32)
        # Batch first, as this call wants it; with lengths, the backward direction starts at each sequence's own end.
        xs = row_major(jnp.swapaxes(xs, 0, 1))
        ys, _, _ = rnn.lstm(xs, zeros, zeros, weights, lengths, dropout=0.0, **self._shape)
        return jnp.swapaxes(row_major(ys), 0, 1)

    def from_canonical(self, arrays):
        layers = [[arrays[name] for name in weight_names(*place)] for place in layer_directions(self._workload)]
        matrices = [matrix.T.ravel() for w, u, _ in layers for matrix in (w, u)]
        # The second bias starts at zero.
        biases = [bias for _, _, b in layers for bias in (b, np.zeros_like(b))]
        return np.concatenate(matrices + biases)

    def to_canonical(self, weights, join):
        arrays = {}
        by_kind = rnn.unpack_lstm_weights(weights, **self._shape)
        for index, place in enumerate(layer_directions(self._workload)):
            w, u, first, second = [kind[index] for kind in by_kind]
            arrays.update(zip(weight_names(*place), (w.T, u.T, join(first, second))))
        return arrays
