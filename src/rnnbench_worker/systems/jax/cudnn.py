"""cuDNN's LSTM through jax.experimental.rnn: all layers, directions and steps in one call, on CUDA alone.

Its weights are one flat array: of every layer and direction W_ih `[4H,in]` and W_hh `[4H,H]`, after all of
these the two biases of every one. Whether it may take TF32 follows the process's default precision.
"""

import jax.numpy as jnp
import numpy as np
from jax.experimental import rnn
from jax.experimental.layout import Layout, with_layout_constraint

from rnnbench_worker.canonical import directions, names


def in_order(array):
    """An array, and its gradient, really in memory as their axes say.

    The call takes that for granted but does not ask for it, and XLA likes to transpose by renaming axes:
    the numbers would be read in the wrong order (docs/findings.md).
    """
    return with_layout_constraint(array, Layout(major_to_minor=tuple(range(array.ndim))))


class CudnnStack(object):
    """A stack as `stacks.py` describes it."""

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
        zeros = jnp.zeros((len(directions(self._workload)), batch, self._workload["hidden"]), jnp.float32)
        # Batch first, as cuDNN is asked here; by lengths, so that the way back starts at each one's own end.
        xs = in_order(jnp.swapaxes(xs, 0, 1))
        ys, _, _ = rnn.lstm(xs, zeros, zeros, weights, lengths, dropout=0.0, **self._shape)
        return jnp.swapaxes(in_order(ys), 0, 1)

    def own(self, arrays):
        layers = [[arrays[name] for name in names(*place)] for place in directions(self._workload)]
        matrices = [matrix.T.ravel() for w, u, _ in layers for matrix in (w, u)]
        # The second bias starts at zero.
        biases = [bias for _, _, b in layers for bias in (b, np.zeros_like(b))]
        return np.concatenate(matrices + biases)

    def canonical(self, weights, join):
        arrays = {}
        by_kind = rnn.unpack_lstm_weights(weights, **self._shape)
        for index, place in enumerate(directions(self._workload)):
            w, u, first, second = [kind[index] for kind in by_kind]
            arrays.update(zip(names(*place), (w.T, u.T, join(first, second))))
        return arrays
