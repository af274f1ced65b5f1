"""Equinox: its LSTM cell in JAX's loop, network and program. The module itself is what the loop calls weights.

A module is a tree, here of arrays only, so that `jax.jit`, `jax.grad` and Optax can be used instead of Equinox's
filtered versions of them.
"""

import equinox
import jax
import jax.numpy as jnp

from rnnbench_worker.systems import jax as base
from rnnbench_worker.systems.jax import graphs
from rnnbench_worker.systems.jax.inspection import profiler
from rnnbench_worker.systems.jax.network import LoopStack
from rnnbench_worker.systems.jax.program import EXECUTIONS, builds

__all__ = ["build", "builds", "describe", "graphs", "profiler", "prove"]


def describe(job):
    hello = base.describe(job)
    hello["versions"]["equinox"] = equinox.__version__
    return hello


def build(job, parameters):
    stack = LoopStack(job["workload"], EquinoxCell(job["precision"]), EXECUTIONS[job["execution"]].loop)
    return base.build_with(job, stack, parameters)


class EquinoxCell(object):
    """equinox.nn.LSTMCell: transposed weights, gates i, f, g, o, one bias; for one sequence, mapped over the batch."""

    states = 2

    def __init__(self, precision):
        self._bf16 = precision == "bf16"

    def __call__(self, weights, x, state):
        h, c = state
        if self._bf16:
            # At every step, as in JAX's own product, so that gradients are summed in fp32. The cell state c stays in
            # fp32, and so the new h is fp32 as well.
            weights, x, h = jax.tree.map(lambda array: array.astype(jnp.bfloat16), (weights, x, h))
        return jax.vmap(weights)(x, (h, c))

    def from_canonical(self, w, u, b):
        cell = equinox.nn.LSTMCell(w.shape[0], u.shape[0], key=jax.random.key(0))
        return equinox.tree_at(weights_of, cell, (w.T, u.T, b))

    def to_canonical(self, weights):
        w, u, b = weights_of(weights)
        return [w.T, u.T, b]


def weights_of(cell):
    return cell.weight_ih, cell.weight_hh, cell.bias


def prove(job, ability, arrays):
    from rnnbench_worker.abilities import CELLS, Cannot, arguments_of
    from rnnbench_worker.systems.jax.abilities import LoopLayer, prove_with

    if ability in CELLS:
        offered = arguments_of(equinox.nn.LSTMCell.__init__)
        raise Cannot("equinox.nn.LSTMCell has one step; none of its arguments is for another: " + offered)
    return prove_with(job, ability, arrays, LoopLayer(job, ability, EquinoxCell(job["precision"])))
