"""Flax: a recurrent stack of its own modules (OptimizedLSTMCell, RNN, Bidirectional) in JAX's network and program.

The modules are those of NNX, the API that Flax's documentation teaches today, not of its predecessor Linen. They hold
their parameters. For JAX's program they are split into structure and state, as the documentation advises where the
time of a call matters: `nnx.jit` would split them at every call.
"""

import flax
import jax.numpy as jnp
from flax import nnx

from rnnbench_worker.canonical import layer_directions, weight_names
from rnnbench_worker.systems import jax as base
from rnnbench_worker.systems.jax import graphs
from rnnbench_worker.systems.jax.inspection import profiler
from rnnbench_worker.systems.jax.program import builds

__all__ = ["build", "builds", "describe", "graphs", "profiler", "prove"]


def describe(job):
    hello = base.describe(job)
    hello["versions"]["flax"] = flax.__version__
    return hello


def build(job, parameters):
    return base.build_with(job, FlaxStack(job["workload"], job["precision"]), parameters)


class FlaxStack(object):
    """A stack as `jax/network.py` describes it; RNN itself reverses sequences by their lengths."""

    def __init__(self, workload, precision):
        self._workload = workload
        module = Layers(workload, jnp.bfloat16 if precision == "bf16" else None)
        self._structure = nnx.graphdef(module)

    def __call__(self, weights, xs, lengths):
        return nnx.merge(self._structure, weights)(xs, lengths)

    def from_canonical(self, arrays):
        module = Layers(self._workload, None)
        for place, cell in zip(layer_directions(self._workload), module.cells()):
            for parameter, name in zip(weights_of(cell), weight_names(*place)):
                parameter[...] = arrays[name]
        return nnx.state(module)

    def to_canonical(self, weights, join):
        arrays = {}
        for place, cell in zip(layer_directions(self._workload), nnx.merge(self._structure, weights).cells()):
            arrays.update((name, parameter[...]) for name, parameter in zip(weight_names(*place), weights_of(cell)))
        return arrays


class Layers(nnx.Module):
    """One layer after the other, as a user of Flax would write them."""

    def __init__(self, workload, dtype):
        hidden, width = workload["hidden"], workload["input_width"]
        self.layers = nnx.List()
        for _ in range(workload["layers"]):
            # The initial weights do not matter: they are replaced.
            directions = [
                nnx.RNN(nnx.OptimizedLSTMCell(width, hidden, dtype=dtype, rngs=nnx.Rngs(0)), rngs=False)
                for _ in workload["directions"]
            ]
            self.layers.append(directions[0] if len(directions) == 1 else nnx.Bidirectional(*directions, rngs=False))
            width = hidden * len(directions)

    def __call__(self, xs, lengths):
        # RNN needs a random generator even where the state starts at zero. Its own would be one more state to pass on.
        rngs = nnx.Rngs(0)
        for layer in self.layers:
            xs = layer(xs, seq_lengths=lengths, time_major=True, rngs=rngs)
        return xs

    def cells(self):
        """In the order of computation."""
        for layer in self.layers:
            if isinstance(layer, nnx.Bidirectional):
                yield layer.forward_rnn.cell
                yield layer.backward_rnn.cell
            else:
                yield layer.cell


def weights_of(cell):
    """w, u and b, which are in the canonical layout; the bias belongs to the layer that multiplies h."""
    return cell.dense_i.kernel, cell.dense_h.kernel, cell.dense_h.bias


def prove(job, ability, arrays):
    from .abilities import prove

    return prove(job, ability, arrays)
