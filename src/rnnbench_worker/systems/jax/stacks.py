"""The recurrent stack as a component of the network: a loop around any cell.

A stack is a pure function, `stack(weights, xs, lengths)`, with `xs [steps, batch, width]`, that gives
`[steps, batch, hidden × directions]`; `lengths` is None where all are the same. It knows how its weights
lie in memory: `own(arrays)` takes canonical arrays, `canonical(weights, join)` gives them back from
weights on the host. `join` makes one of two biases, where there are two.
"""

import jax.numpy as jnp

from rnnbench_worker.canonical import directions, names
from rnnbench_worker.sequences import within


class LoopStack(object):
    """The seeds' order: outer loop over depth, inner loop over time."""

    def __init__(self, workload, cell, loop):
        self._workload = workload
        self._cell = cell
        self._loop = loop

    def __call__(self, weights, xs, lengths):
        mask = None if lengths is None else within(jnp.arange(xs.shape[0]), lengths)
        rest = iter(weights)
        for _ in range(self._workload["layers"]):
            outputs = [
                self._direction(next(rest), xs, mask, direction == "bwd") for direction in self._workload["directions"]
            ]
            xs = outputs[0] if len(outputs) == 1 else jnp.concatenate(outputs, axis=2)
        return xs

    def _direction(self, weights, xs, mask, reverse):
        """One layer in one direction."""

        def step(state, turn):
            x, inside = turn
            h, c = state
            new_h, new_c = self._cell(weights, x, state)
            if inside is None:
                return (new_h, new_c), new_h
            # Outside its sequence the state stays; the way back so starts at each one's own end.
            h = jnp.where(inside, new_h, h)
            c = jnp.where(inside, new_c, c)
            return (h, c), jnp.where(inside, h, 0.0)

        zeros = jnp.zeros((xs.shape[1], self._workload["hidden"]), jnp.float32)
        return self._loop(step, (zeros, zeros), (xs, mask), reverse)

    def own(self, arrays):
        return [self._cell.own(*[arrays[name] for name in names(*place)]) for place in directions(self._workload)]

    def canonical(self, weights, join):
        arrays = {}
        for place, own in zip(directions(self._workload), weights):
            arrays.update(zip(names(*place), self._cell.canonical(own)))
        return arrays
