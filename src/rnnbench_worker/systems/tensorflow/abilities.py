"""The abilities of TensorFlow's systems: a function for each, with the loop and the compiler of the row's execution.

The state is one tensor, h and c side by side, so that a loop returns both of every step.
"""

import numpy as np
import tensorflow as tf

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

from .any_cell import AnyCell, Operators
from .cells import CELLS as LSTM_CELLS
from .cells import stack_weights, unstack_weights
from .cudnn import CudnnStack
from .network import KernelStack
from .program import EXECUTIONS, tracing_count
from .settings import device_string, product_for


class AbilityOperators(Operators):
    @staticmethod
    def attend(query, memory):
        shares = tf.nn.softmax(tf.einsum("bsh,bh->bs", memory, query), axis=1)
        return tf.einsum("bs,bsh->bh", shares, memory)


def prove(job, ability, arrays):
    with tf.device(device_string(job)):
        layer = make_layer(job, ability)
        weights = tf.nest.map_structure(tf.Variable, layer.from_canonical(weight_arrays(ability, arrays)))
        compute = make_function(job, ability, layer, weights)

        def run(steps):
            given = [
                tuple(map(tf.convert_to_tensor, some(ability, arrays, steps))) for some in (sequences_of, probes_of)
            ]
            outputs, gradients = compute(*given)
            found = dict(zip("hc", np.split(outputs.numpy(), 2, axis=2)))
            packed = tf.nest.pack_sequence_as(weights, [one.numpy() for one in gradients])
            for name, value in layer.to_canonical(packed).items():
                found["gradient/" + name] = value
            return found

        return run_ability(ability, run, lambda: tracing_count(compute))


def make_function(job, ability, layer, weights):
    """The outputs and the gradients of all weights, compiled as a training step of the row is."""
    flat = tf.nest.flatten(weights)

    def loss_of(xs, sequences, probes):
        outputs = layer(weights, xs, *sequences[1:])
        return tf.reduce_sum(outputs * tf.concat(probes, axis=2)), outputs

    def compute(sequences, probes):
        xs = sequences[0]
        with tf.GradientTape() as tape:
            if ability == "double-backward":
                with tf.GradientTape() as inner:
                    inner.watch(xs)
                    loss, outputs = loss_of(xs, sequences, probes)
                gradient = inner.gradient(loss, xs)
                loss = tf.reduce_sum(gradient * gradient)
            else:
                loss, outputs = loss_of(xs, sequences, probes)
        gradients = tape.gradient(loss, flat, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return outputs, [tf.convert_to_tensor(one) for one in gradients]

    if ability == "other-steps" and job["execution"] == "graph-while":
        # A loop in the graph may run any number of steps, if it is not told one.
        workload = job["workload"]
        batch, hidden = workload["batch"], workload["hidden"]
        widths = [workload["input_width"], 1], [hidden, hidden]
        (xs, flags), probes = [[tf.TensorSpec([None, batch, width]) for width in some] for some in widths]
        signature = [(xs, flags, tf.TensorSpec([batch, 1])), tuple(probes)]
        return tf.function(compute, autograph=False, input_signature=signature)
    return EXECUTIONS[job["execution"]].compiled(compute)


def make_layer(job, ability):
    granularity, workload, product = job["granularity"], job["workload"], product_for(job["precision"])
    if granularity in ("layer", "stack"):
        return kernel_layer(job, ability)
    if granularity == "cell" and ability in CELLS:
        offered = arguments_of(tf.raw_ops.LSTMBlockCell)
        raise Cannot("LSTMBlockCell is one operator, to which only peepholes can be added; it is given " + offered)
    cell = AnyCell(CELLS[ability], product) if ability in CELLS else LSTM_CELLS[granularity](product)
    return LoopLayer(workload["hidden"], ability, cell, product, EXECUTIONS[job["execution"]].loop)


class LoopLayer(object):
    """`layer(weights, xs, flags, extra)` gives h and c of all steps, side by side."""

    def __init__(self, hidden, ability, cell, product, loop):
        self._hidden, self._cell, self._loop = hidden, cell, loop
        self._names = []
        self._step = step_around(ability, cell, AbilityOperators(product))

    def __call__(self, weights, xs, flags, extra):
        def step(state, slices):
            h, c = tf.split(state[0], 2, axis=1)
            x, flag = slices
            new = tf.concat(self._step(weights["cell"], weights["head"], x, flag, h, c, extra), axis=1)
            return (new,), new

        zeros = tf.zeros([xs.shape[1], 2 * self._hidden])
        return self._loop(step, (zeros,), [xs, flags], False)

    def from_canonical(self, arrays):
        own = {name: array for name, array in arrays.items() if name != "head"}
        self._names = list(own)
        head = arrays.get("head", np.zeros([1, 1], np.float32))
        return {"cell": list(self._cell.from_canonical(*own.values())), "head": head}

    def to_canonical(self, weights):
        return dict(zip(self._names, self._cell.to_canonical(weights["cell"])), head=weights["head"])


# --- kernels of many steps ------------------------------------------------------------------------------


def kernel_layer(job, ability):
    """BlockLSTM returns all cell states and takes no lengths; cuDNN the other way round."""
    is_cudnn = job["granularity"] == "stack"
    within_steps = ability in CELLS or ability in ("recurrent-dropout", "reset", "feedback", "attention")
    operator = tf.raw_ops.CudnnRNNV3 if is_cudnn else tf.raw_ops.BlockLSTM
    if within_steps or (is_cudnn and ability == "all-states"):
        what = "" if is_cudnn else ", to which only peepholes can be added"
        raise Cannot("one operator computes all steps{}; it is given {}".format(what, arguments_of(operator)))
    return CudnnLayer(job, ability) if is_cudnn else BlockLayer(job["workload"], ability)


def with_last_states(hs, lengths):
    """What a layer in one direction gives for sequences of their own lengths, from the outputs of all steps."""
    last = tf.gather_nd(tf.transpose(hs, [1, 0, 2]), tf.stack([tf.range(hs.shape[1]), lengths - 1], axis=1))
    return tf.concat([hs[:-1], last[None]], axis=0)


def lengths_of(flags):
    return tf.cast(tf.reduce_sum(flags[:, :, 0], axis=0), tf.int32)


class BlockLayer(object):
    """The BlockLSTM kernel, as in the row."""

    def __init__(self, workload, ability):
        self._stack = KernelStack(workload)
        self._hidden = workload["hidden"]
        self._has_lengths = ability == "variable-lengths"

    def __call__(self, weights, xs, flags, extra):
        zeros, w, b = self._stack.zeros(xs), weights[0], weights[1]
        peepholes = tf.zeros([self._hidden])
        found = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.constant(xs.shape[0], tf.int64), x=xs, cs_prev=zeros, h_prev=zeros, w=w, b=b,
            wci=peepholes, wcf=peepholes, wco=peepholes, forget_bias=0.0, cell_clip=-1.0, use_peephole=False
        )  # fmt: skip
        hs = with_last_states(found.h, lengths_of(flags)) if self._has_lengths else found.h
        return tf.concat([hs, found.cs], axis=2)

    @staticmethod
    def from_canonical(arrays):
        return stack_weights(*arrays.values())

    @staticmethod
    def to_canonical(weights):
        return dict(zip("wub", unstack_weights(weights)))


class CudnnLayer(object):
    """cuDNN's LSTM with the lengths of the batch. Of the cell states it has no more than zeros."""

    def __init__(self, job, ability):
        self._stack = CudnnStack(job)
        self._has_lengths = ability == "variable-lengths"

    def __call__(self, weights, xs, flags, extra):
        lengths = lengths_of(flags) if self._has_lengths else None
        hs = self._stack(weights, xs, lengths)
        hs = hs if lengths is None else with_last_states(hs, lengths)
        return tf.concat([hs, tf.zeros_like(hs)], axis=2)

    def from_canonical(self, arrays):
        return self._stack.from_canonical({"layer0.fwd." + name: array for name, array in arrays.items()})

    def to_canonical(self, weights):
        # Each of two added biases has the gradient of their sum.
        found = self._stack.to_canonical(weights, lambda first, second: (first + second) / 2)
        return {name.rpartition(".")[2]: array for name, array in found.items()}
