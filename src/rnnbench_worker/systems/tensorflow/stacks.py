"""The recurrent stack, built once per granularity: loops around a cell, a kernel per layer, or cuDNN.

A stack is called as `stack(weights, xs, lengths)` with `xs [steps, batch, width]` and returns
`[steps, batch, hidden × directions]`; steps beyond a sequence's length are zero. Its weights are a dict
of lists of tensors; `own` makes it of canonical arrays, `canonical` gives them back.
"""

import tensorflow as tf

from rnnbench_worker.canonical import directions, names
from rnnbench_worker.sequences import within

from .cells import CELLS, canonical_stacked, own_stacked
from .cudnn import CudnnStack
from .precision import product_for


def make_stack(job, loop):
    workload, granularity = job["workload"], job["granularity"]
    if granularity == "stack":
        return CudnnStack(workload)
    if granularity == "layer":
        return KernelStack(workload)
    return LoopStack(workload, CELLS[granularity](product_for(job["precision"])), loop)


class LayeredStack(object):
    """The seeds' order: outer loop over depth, inner loop over time, however that one is made."""

    def __init__(self, workload):
        self._workload = workload

    def __call__(self, weights, xs, lengths):
        mask = None if lengths is None else within(tf.range(xs.shape[0]), lengths)
        for layer in range(self._workload["layers"]):
            outputs = [
                self.direction(weights[key(layer, direction)], xs, mask, lengths, direction == "bwd")
                for direction in self._workload["directions"]
            ]
            xs = outputs[0] if len(outputs) == 1 else tf.concat(outputs, axis=2)
        return xs

    def own(self, parameters):
        return {
            key(layer, direction): self.own_direction(*[parameters[name] for name in names(layer, direction)])
            for layer, direction in directions(self._workload)
        }

    def canonical(self, weights, join):
        parameters = {}
        for layer, direction in directions(self._workload):
            arrays = self.canonical_direction(weights[key(layer, direction)])
            parameters.update(zip(names(layer, direction), arrays))
        return parameters

    def zeros(self, xs):
        return tf.zeros([xs.shape[1], self._workload["hidden"]])


class LoopStack(LayeredStack):
    """A loop over time around any cell."""

    def __init__(self, workload, cell, loop):
        super(LoopStack, self).__init__(workload)
        self._cell = cell
        self._loop = loop
        self.own_direction = cell.own
        self.canonical_direction = cell.canonical

    def direction(self, weights, xs, mask, lengths, reverse):
        def step(state, turn):
            h, c = state
            new_h, new_c = self._cell(weights, turn[0], h, c)
            if mask is None:
                return (new_h, new_c), new_h
            # Outside its sequence the state stays; the way back so starts at each one's own end.
            inside = turn[1]
            h = tf.where(inside, new_h, h)
            c = tf.where(inside, new_c, c)
            return (h, c), tf.where(inside, h, tf.zeros_like(h))

        sequences = [xs] if mask is None else [xs, mask]
        return self._loop(step, (self.zeros(xs), self.zeros(xs)), sequences, reverse)


class KernelStack(LayeredStack):
    """The BlockLSTM kernel: one operator for all steps of a layer in one direction."""

    own_direction = staticmethod(own_stacked)
    canonical_direction = staticmethod(canonical_stacked)

    def direction(self, weights, xs, mask, lengths, reverse):
        w, b = weights
        xs = turn_round(xs, lengths) if reverse else xs
        no_peephole = tf.zeros([self._workload["hidden"]])
        hs = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.constant(xs.shape[0], tf.int64), x=xs, cs_prev=self.zeros(xs), h_prev=self.zeros(xs),
            w=w, b=b, wci=no_peephole, wcf=no_peephole, wco=no_peephole,
            forget_bias=0.0, cell_clip=-1.0, use_peephole=False
        ).h  # fmt: skip
        hs = turn_round(hs, lengths) if reverse else hs
        return hs if mask is None else tf.where(mask, hs, tf.zeros_like(hs))


def turn_round(xs, lengths):
    """Reversed in time, each sequence by its own length."""
    if lengths is None:
        return tf.reverse(xs, axis=[0])
    return tf.reverse_sequence(xs, lengths, seq_axis=0, batch_axis=1)


def key(layer, direction):
    return "layer{}.{}".format(layer, direction)
