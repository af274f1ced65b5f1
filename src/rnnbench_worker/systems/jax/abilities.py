"""The abilities of JAX's systems: a pure function for each, with the loop and the compiler of the row's execution.

The state is one array, h and c side by side, so that a loop returns both of every step.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import rnn

from rnnbench_worker.abilities import (
    CELLS,
    Cannot,
    arguments_of,
    probes_of,
    run_ability,
    sequences_of,
    step_around,
    weight_arrays,
)

from .network import AnyCell, CudnnStack, Operators, cell_for
from .program import EXECUTIONS, builds
from .settings import product_for


class AbilityOperators(Operators):
    @staticmethod
    def attend(query, memory):
        shares = jax.nn.softmax(jnp.einsum("bsh,bh->bs", memory, query), axis=1)
        return jnp.einsum("bs,bsh->bh", shares, memory)


def prove(job, ability, arrays):
    product = product_for(job["precision"])
    if job["granularity"] == "stack":
        layer = cudnn_layer(job, ability, arrays)
    elif ability in CELLS:
        layer = LoopLayer(job, ability, AnyCell(CELLS[ability], product))
    else:
        layer = LoopLayer(job, ability, cell_for(job["workload"], job["granularity"], product))
    return prove_with(job, ability, arrays, layer)


def prove_with(job, ability, arrays, layer):
    """A layer of JAX or of another library, compiled as the row is; called again with more steps if that is asked."""
    compute = EXECUTIONS[job["execution"]].compiled(gradients_of(layer, ability == "double-backward"))
    weights = jax.tree.map(jnp.asarray, layer.from_canonical(weight_arrays(ability, arrays)))

    def run(steps):
        given = [tuple(map(jnp.asarray, some(ability, arrays, steps))) for some in (sequences_of, probes_of)]
        outputs, gradients = jax.block_until_ready(compute(weights, *given))
        found = dict(zip("hc", np.split(np.asarray(outputs), 2, axis=2)))
        for name, value in layer.to_canonical(jax.tree.map(np.asarray, gradients)).items():
            found["gradient/" + name] = value
        return found

    return run_ability(ability, run, lambda: builds(None))


def gradients_of(layer, twice):
    """The function that gives the outputs and the gradients of the weights."""

    def loss(weights, xs, sequences, probes):
        outputs = layer(weights, xs, *sequences[1:])
        return (outputs * jnp.concatenate(probes, axis=2)).sum(), outputs

    def penalty(weights, xs, sequences, probes):
        gradient, outputs = jax.grad(loss, argnums=1, has_aux=True)(weights, xs, sequences, probes)
        return (gradient * gradient).sum(), outputs

    def compute(weights, sequences, probes):
        wanted = penalty if twice else loss
        gradients, outputs = jax.grad(wanted, has_aux=True)(weights, sequences[0], sequences, probes)
        return outputs, gradients

    return compute


class LoopLayer(object):
    """`layer(weights, xs, flags, extra)` gives h and c of all steps, side by side."""

    def __init__(self, job, ability, cell):
        self._cell = cell
        self._hidden = job["workload"]["hidden"]
        self._loop = EXECUTIONS[job["execution"]].loop
        self._names = []
        self._step = step_around(ability, self._run_cell, AbilityOperators(product_for(job["precision"])))

    def _run_cell(self, weights, x, h, c):
        return self._cell(weights, x, (h, c))

    def __call__(self, weights, xs, flags, extra):
        def step(state, slices):
            h, c = jnp.split(state[0], 2, axis=1)
            x, flag = slices
            new = jnp.concatenate(self._step(weights["cell"], weights["head"], x, flag, h, c, extra), axis=1)
            return (new,), new

        zeros = jnp.zeros((xs.shape[1], 2 * self._hidden), jnp.float32)
        return self._loop(step, (zeros,), (xs, flags), False)

    def from_canonical(self, arrays):
        own = {name: array for name, array in arrays.items() if name != "head"}
        self._names = list(own)
        return {"cell": self._cell.from_canonical(*own.values()), "head": arrays.get("head", np.zeros(1, np.float32))}

    def to_canonical(self, weights):
        return dict(zip(self._names, self._cell.to_canonical(weights["cell"])), head=weights["head"])


# --- cuDNN --------------------------------------------------------------------------------------------


class CudnnLayer(object):
    """jax.experimental.rnn.lstm, with lengths if it is given some. Of the cell states it has no more than zeros."""

    def __init__(self, workload, lengths):
        self._stack = CudnnStack(workload)
        self._lengths = lengths

    def __call__(self, weights, xs, flags, extra):
        hs = self._stack(weights, xs, self._lengths)
        if self._lengths is not None:
            last = hs[self._lengths - 1, jnp.arange(xs.shape[1])]
            hs = jnp.concatenate([hs[:-1], last[None]])
        return jnp.concatenate([hs, jnp.zeros_like(hs)], axis=2)

    def from_canonical(self, arrays):
        return self._stack.from_canonical({"layer0.fwd." + name: array for name, array in arrays.items()})

    def to_canonical(self, weights):
        # Each of two added biases has the gradient of their sum.
        found = self._stack.to_canonical(weights, lambda first, second: (first + second) / 2)
        return {name.rpartition(".")[2]: array for name, array in found.items()}


def cudnn_layer(job, ability, arrays):
    if ability in CELLS or ability in ("recurrent-dropout", "all-states", "reset", "feedback", "attention"):
        offered = arguments_of(rnn.lstm)
        raise Cannot("cuDNN computes all steps of an LSTM and returns its last cell state: it is given " + offered)
    lengths = jnp.asarray(arrays["lengths"]) if ability == "variable-lengths" else None
    return CudnnLayer(job["workload"], lengths)
