"""The whole network as functions of variables and batch: embedding or features, recurrent stack, head, loss.

Time is the first axis inside: `[steps, batch, width]`. A stack is called as `stack(weights, xs, lengths)` with
`xs [steps, batch, width]` and returns `[steps, batch, hidden × directions]`; steps after the end of a sequence are
zero. Its weights are a dict of lists of tensors; `from_canonical` makes it of canonical arrays, `to_canonical`
returns those.
"""

import tensorflow as tf

from rnnbench_worker.canonical import is_stack_parameter, layer_directions, step_mask, weight_names

from .any_cell import AnyCell
from .cells import CELLS, stack_weights, unstack_weights
from .cudnn import CudnnStack
from .settings import product_for


class Network(object):
    """What is fixed before any number is known; the variables are passed at every call."""

    def __init__(self, job, stack, native_ctc):
        self._workload = job["workload"]
        self._product = product_for(job["precision"])
        self._stack = stack
        self._native_ctc = native_ctc

    def logits(self, variables, batch):
        """`[steps, batch, classes]`, or `[batch, classes]`."""
        workload = self._workload
        xs = batch["inputs"]
        if workload["vocabulary"]:
            xs = tf.gather(variables["embedding"], tf.transpose(xs))
        else:
            xs = tf.transpose(xs, [1, 0, 2])
        hs = self._stack(variables["stack"], xs, batch["lengths"] if workload["variable_length"] else None)
        if workload["head_on"] == "last-step":
            logits = self._product(hs[-1], variables["head.w"])
        else:
            # As one product of two matrices: with a third axis it would be one product for each step.
            flat = self._product(tf.reshape(hs, [-1, hs.shape[2]]), variables["head.w"])
            logits = tf.reshape(flat, [hs.shape[0], hs.shape[1], workload["classes"]])
        return logits + variables["head.b"] if workload["head_bias"] else logits

    def loss(self, variables, batch):
        """In fp32 whatever the precision: mean cross-entropy, or CTC as a mean over sequences."""
        logits = self.logits(variables, batch)
        if self._workload["loss"] == "ctc":
            return tf.reduce_mean(self._ctc(logits, batch))
        targets = tf.transpose(batch["targets"]) if len(logits.shape) == 3 else batch["targets"]
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))

    def _ctc(self, logits, batch):
        """Sparse labels select TensorFlow's CTC kernel (cuDNN's on CUDA), dense ones its CTC of primitive operators."""
        labels = tf.sparse.from_dense(batch["targets"]) if self._native_ctc else batch["targets"]
        return tf.nn.ctc_loss(
            labels=labels,
            logits=logits,
            label_length=batch["target_lengths"],
            logit_length=batch["lengths"],
            logits_time_major=True,
            blank_index=0,
        )

    # --- parameters ---

    def from_canonical(self, parameters):
        """Canonical arrays in the layout of this network."""
        arrays = {name: array for name, array in parameters.items() if not is_stack_parameter(name)}
        arrays["stack"] = self._stack.from_canonical(parameters)
        return arrays

    def to_canonical(self, arrays, join):
        parameters = {name: array for name, array in arrays.items() if name != "stack"}
        parameters.update(self._stack.to_canonical(arrays["stack"], join))
        return parameters


# --- stacks -------------------------------------------------------------------------------------------


def make_stack(job, loop):
    workload, granularity = job["workload"], job["granularity"]
    if granularity == "stack":
        return CudnnStack(job)
    if granularity == "layer":
        return KernelStack(workload)
    product = product_for(job["precision"])
    # The LSTM is written out in three granularities; every other cell is as its file says.
    cell = CELLS[granularity](product) if workload["cell"] == "lstm" else AnyCell(workload["cell"], product)
    return LoopStack(workload, cell, loop)


class LayeredStack(object):
    """The outer loop runs over depth, the inner one over time; subclasses implement the inner one."""

    def __init__(self, workload):
        self._workload = workload

    def __call__(self, weights, xs, lengths):
        mask = None if lengths is None else step_mask(tf.range(xs.shape[0]), lengths)
        for layer in range(self._workload["layers"]):
            outputs = [
                self.direction(weights[layer_key(layer, direction)], xs, mask, lengths, direction == "bwd")
                for direction in self._workload["directions"]
            ]
            xs = outputs[0] if len(outputs) == 1 else tf.concat(outputs, axis=2)
        return xs

    def from_canonical(self, parameters):
        return {
            layer_key(layer, direction): self.direction_from_canonical(
                *[parameters[name] for name in self._names(layer, direction)]
            )
            for layer, direction in layer_directions(self._workload)
        }

    def to_canonical(self, weights, join):
        parameters = {}
        for layer, direction in layer_directions(self._workload):
            arrays = self.direction_to_canonical(weights[layer_key(layer, direction)])
            parameters.update(zip(self._names(layer, direction), arrays))
        return parameters

    def _names(self, layer, direction):
        return weight_names(layer, direction, self._workload["weights"])

    def zeros(self, xs):
        return tf.zeros([xs.shape[1], self._workload["hidden"]])


class LoopStack(LayeredStack):
    """A loop over time around any cell."""

    def __init__(self, workload, cell, loop):
        super(LoopStack, self).__init__(workload)
        self._cell = cell
        self._loop = loop
        self.direction_from_canonical = cell.from_canonical
        self.direction_to_canonical = cell.to_canonical

    def direction(self, weights, xs, mask, lengths, reverse):
        def step(state, slices):
            new = tuple(self._cell(weights, slices[0], *state))
            if mask is None:
                return new, new[0]
            # Outside a sequence the state is kept, so that the backward direction starts at the sequence's own end.
            inside = slices[1]
            kept = tuple(tf.where(inside, one, old) for one, old in zip(new, state))
            return kept, tf.where(inside, kept[0], tf.zeros_like(kept[0]))

        sequences = [xs] if mask is None else [xs, mask]
        return self._loop(step, (self.zeros(xs),) * self._cell.states, sequences, reverse)


class KernelStack(LayeredStack):
    """The BlockLSTM kernel: one operator for all steps of a layer in one direction."""

    direction_from_canonical = staticmethod(stack_weights)
    direction_to_canonical = staticmethod(unstack_weights)

    def direction(self, weights, xs, mask, lengths, reverse):
        w, b = weights
        xs = reverse_in_time(xs, lengths) if reverse else xs
        zero_peepholes = tf.zeros([self._workload["hidden"]])
        hs = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.constant(xs.shape[0], tf.int64), x=xs, cs_prev=self.zeros(xs), h_prev=self.zeros(xs),
            w=w, b=b, wci=zero_peepholes, wcf=zero_peepholes, wco=zero_peepholes,
            forget_bias=0.0, cell_clip=-1.0, use_peephole=False
        ).h  # fmt: skip
        hs = reverse_in_time(hs, lengths) if reverse else hs
        return hs if mask is None else tf.where(mask, hs, tf.zeros_like(hs))


def reverse_in_time(xs, lengths):
    """Reversed in time, each sequence by its own length."""
    if lengths is None:
        return tf.reverse(xs, axis=[0])
    return tf.reverse_sequence(xs, lengths, seq_axis=0, batch_axis=1)


def layer_key(layer, direction):
    return "layer{}.{}".format(layer, direction)
