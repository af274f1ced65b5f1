"""The recurrent stack of Flax's own modules: OptimizedLSTMCell, RNN, Bidirectional.

They are NNX's, the API that Flax's documentation teaches today; Linen, the one before it, is kept for
those who have it. Modules of NNX hold their parameters. For JAX's program they are split into structure
and state, the way its documentation advises where the time of a call counts: `nnx.jit` would do the same
at every call.
"""

import jax.numpy as jnp
from flax import nnx

from rnnbench_worker.canonical import directions, names


class FlaxStack(object):
    """A stack as `jax/stacks.py` describes it; reversing by length is RNN's own."""

    def __init__(self, workload, precision):
        self._workload = workload
        module = Layers(workload, jnp.bfloat16 if precision == "bf16" else None)
        self._structure = nnx.graphdef(module)

    def __call__(self, weights, xs, lengths):
        return nnx.merge(self._structure, weights)(xs, lengths)

    def own(self, arrays):
        module = Layers(self._workload, None)
        for place, cell in zip(directions(self._workload), module.cells()):
            for parameter, name in zip(parameters_of(cell), names(*place)):
                parameter[...] = arrays[name]
        return nnx.state(module)

    def canonical(self, weights, join):
        arrays = {}
        for place, cell in zip(directions(self._workload), nnx.merge(self._structure, weights).cells()):
            arrays.update((name, parameter[...]) for name, parameter in zip(names(*place), parameters_of(cell)))
        return arrays


class Layers(nnx.Module):
    """One layer on the other, as a user of Flax would write it."""

    def __init__(self, workload, dtype):
        hidden, width = workload["hidden"], workload["input_width"]
        self.layers = nnx.List()
        for _ in range(workload["layers"]):
            # The initial weights are of no account: others are put in their place.
            ways = [
                nnx.RNN(nnx.OptimizedLSTMCell(width, hidden, dtype=dtype, rngs=nnx.Rngs(0)), rngs=False)
                for _ in workload["directions"]
            ]
            self.layers.append(ways[0] if len(ways) == 1 else nnx.Bidirectional(*ways, rngs=False))
            width = hidden * len(ways)

    def __call__(self, xs, lengths):
        # RNN asks for random numbers even where the state starts at zero. Its own would be one more state to carry.
        rngs = nnx.Rngs(0)
        for layer in self.layers:
            xs = layer(xs, seq_lengths=lengths, time_major=True, rngs=rngs)
        return xs

    def cells(self):
        """In the order of computing."""
        for layer in self.layers:
            ways = [layer.forward_rnn, layer.backward_rnn] if isinstance(layer, nnx.Bidirectional) else [layer]
            for way in ways:
                yield way.cell


def parameters_of(cell):
    """w, u, b, already in the canonical layout; the bias lies on the side of h."""
    return cell.dense_i.kernel, cell.dense_h.kernel, cell.dense_h.bias
