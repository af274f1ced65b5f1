"""Keras 3: the network and the program that all backends share. Each folder keras-… adds what its backend needs.

Keras looks for its device when it is imported: a folder whose settings must come first imports this module after them.
"""

from collections import namedtuple

import keras
import numpy as np
from keras import layers, ops

import rnnbench_cells
from rnnbench_worker.canonical import (
    as_int32,
    join_bias_gradients,
    join_bias_values,
    layer_directions,
    step_mask,
    weight_names,
    with_lengths,
)
from rnnbench_worker.program import BETA_1, BETA_2, EPSILON, LEARNING_RATE, Program

#: The precision of the layers' computation, as Keras names it; variables are fp32 in all cases.
POLICIES = {"fp32": "float32", "tf32": "float32", "bf16": "mixed_bfloat16"}

Execution = namedtuple("Execution", "unroll use_cudnn run_eagerly jit_compile")


def add_keras_version(description):
    """A backend's description with the version of Keras added."""
    description["versions"]["keras"] = keras.__version__
    return description


def parse_execution(name):
    """An execution names what compiles a step; with `-unrolled`, layers unroll their loop over time. Other endings are
    a backend's own (`adam_of`).

    Keras's own choice depends on the machine, not on the job, so it is not used: it compiles TensorFlow's steps with
    XLA wherever the machine has a GPU, except around a cuDNN layer.
    """
    mode, _, loop = name.partition("-")
    return Execution(
        unroll=loop == "unrolled",
        # XLA cannot compile TensorFlow's cuDNN operators: Keras would silently not use XLA.
        use_cudnn=False if mode == "xla" else "auto",
        run_eagerly=mode == "eager",
        jit_compile=mode in ("xla", "jit", "compile"),
    )


# --- the network --------------------------------------------------------------------------------------


class StepMask(layers.Layer):
    """The mask that Keras's layers expect, `[batch, steps]`, from the lengths of the sequences."""

    def __init__(self, steps):
        super(StepMask, self).__init__()
        self._steps = steps

    def call(self, lengths):
        return ops.transpose(step_mask(ops.arange(self._steps), lengths)[:, :, 0])


class CtcModel(keras.Model):
    """A model whose targets have lengths: Keras's own CTC loss assumes that every sequence is full."""

    ctc_loss = staticmethod(ops.ctc_loss)  # a backend on which it is wrong has another one to offer

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        # The mean over sequences: each has the same weight, whatever its length.
        return ops.mean(self.ctc_loss(y["targets"], y_pred, y["target_lengths"], y["lengths"], mask_index=0))


def make_model(workload, granularity, unroll, use_cudnn):
    """A model of embedding or features, recurrent layers and head, called with inputs, and with lengths if they vary.

    It returns `[batch, steps, classes]` or `[batch, classes]`.
    """
    steps, last_step = workload["steps"], workload["head_on"] == "last-step"
    bidirectional = len(workload["directions"]) == 2
    if workload["vocabulary"]:
        inputs = [keras.Input((steps,), dtype="int32")]
        xs = layers.Embedding(workload["vocabulary"], workload["embedding"], name="embedding")(inputs[0])
    else:
        inputs = [keras.Input((steps, workload["features"]))]
        xs = inputs[0]
    mask = None
    if workload["variable_length"]:
        inputs.append(keras.Input((), dtype="int32"))
        mask = StepMask(steps)(inputs[1])
    for layer in range(workload["layers"]):
        options = {
            # For the backward direction Keras would return the step it computed last, which is the first in time.
            "return_sequences": bidirectional or not last_step or layer < workload["layers"] - 1,
            "unroll": unroll,
            "name": "layer{}".format(layer),
        }
        if granularity == "packed":
            recurrent = layers.RNN(AnyCell(workload["cell"], workload["hidden"]), **options)
        elif workload["cell"] == "gru":
            recurrent = layers.GRU(workload["hidden"], reset_after=True, use_cudnn=use_cudnn, **options)
        elif workload["cell"] == "elman":
            recurrent = layers.SimpleRNN(workload["hidden"], **options)
        else:
            recurrent = layers.LSTM(workload["hidden"], unit_forget_bias=False, use_cudnn=use_cudnn, **options)
        if bidirectional:
            recurrent = layers.Bidirectional(recurrent, name="layer{}".format(layer))
        xs = recurrent(xs, mask=mask)
    if last_step and bidirectional:
        xs = xs[:, -1]
    logits = layers.Dense(workload["classes"], use_bias=workload["head_bias"], name="head")(xs)
    # The loss is computed in fp32 whatever the precision.
    logits = layers.Activation("linear", dtype="float32")(logits)
    return (CtcModel if workload["loss"] == "ctc" else keras.Model)(inputs, logits)


@keras.saving.register_keras_serializable("rnnbench")
class AnyCell(layers.Layer):
    """A cell of rnnbench_cells, as its file says, for keras.layers.RNN."""

    def __init__(self, kind, hidden, **options):
        super(AnyCell, self).__init__(**options)
        self._kind, self._hidden = kind, hidden
        self._cell = rnnbench_cells.find(kind)
        self.state_size = [hidden] * len(self._cell.STATES)
        self.output_size = hidden

    def build(self, shape):
        shapes = self._cell.parameters(shape[-1], self._hidden)
        self._parts = list(shapes)
        self.own = [self.add_weight(shape=one, name=part) for part, one in shapes.items()]
        self.built = True

    def call(self, x, states, training=False):
        state = dict(zip(self._cell.STATES, states))
        new = self._cell.step(Operators, dict(zip(self._parts, self.own)), x, state)
        found = [new[name] for name in self._cell.STATES]
        return found[0], found

    def get_config(self):
        """`Bidirectional` makes its second direction from the first one's."""
        return dict(super(AnyCell, self).get_config(), hidden=self._hidden, kind=self._kind)


class Operators(object):
    """The vocabulary of rnnbench_cells."""

    matmul, sigmoid, tanh, relu = map(staticmethod, (ops.matmul, ops.sigmoid, ops.tanh, ops.relu))
    softplus, exp, log, maximum = map(staticmethod, (ops.softplus, ops.exp, ops.log, ops.maximum))
    minimum, constant = map(staticmethod, (ops.minimum, ops.stop_gradient))

    @staticmethod
    def split(a, count):
        return ops.split(a, count, axis=-1)

    @staticmethod
    def concat(pieces):
        return ops.concatenate(pieces, axis=-1)

    @staticmethod
    def layer_norm(a, gain, bias):
        centred = a - ops.mean(a, axis=-1, keepdims=True)
        variance = ops.mean(centred * centred, axis=-1, keepdims=True)
        return centred * ops.rsqrt(variance + rnnbench_cells.EPSILON) * gain + bias


def cell_of(model, layer, direction):
    """The cell of a layer in one direction, which holds its variables."""
    found = model.get_layer("layer{}".format(layer))
    if isinstance(found, layers.Bidirectional):
        found = found.forward_layer if direction == "fwd" else found.backward_layer
    return found.cell


class Part(object):
    """Variables that belong together, and the canonical names of what they hold. Mostly the layouts are the same."""

    def __init__(self, names, variables):
        self.names = names
        self.variables = variables

    def assign(self, arrays):
        for variable, array in zip(self.variables, self.to_own([arrays[name] for name in self.names])):
            variable.assign(array)

    def read(self, read_one, join):
        """Canonical arrays of what `read_one` reads of a variable; `join` makes one bias of two."""
        own = [read_one(variable) for variable in self.variables]
        return dict(zip(self.names, self.to_canonical(own, join)))

    def to_own(self, arrays):
        return arrays

    def to_canonical(self, arrays, join):
        return arrays


class GruPart(Part):
    """Keras's GRU has its gates in the order z, r, n, and its biases in two rows: of the input and of the state."""

    def to_own(self, arrays):
        w, u, b, bx, bh = arrays
        rows = [np.concatenate([b, bx]), np.concatenate([np.zeros_like(b), bh])]  # the second bias starts at zero
        return [exchange_gates(one) for one in (w, u, np.stack(rows))]

    def to_canonical(self, arrays, join):
        w, u, (first, second) = [exchange_gates(one) for one in arrays]
        gates = len(first) // 3 * 2
        return [w, u, join(first[:gates], second[:gates]), first[gates:], second[gates:]]


def exchange_gates(array):
    """The first two of three gates, exchanged."""
    one, other, new = np.split(array, 3, axis=-1)
    return np.concatenate([other, one, new], axis=-1)


def parts_of(model, workload):
    """All variables of the model."""
    found = []
    if workload["vocabulary"]:
        found.append(Part(["embedding"], [model.get_layer("embedding").embeddings]))
    for layer, direction in layer_directions(workload):
        cell = cell_of(model, layer, direction)
        own = cell.own if isinstance(cell, AnyCell) else [cell.kernel, cell.recurrent_kernel, cell.bias]
        kind = GruPart if isinstance(cell, layers.GRUCell) else Part
        found.append(kind(weight_names(layer, direction, workload["weights"]), own))
    head = model.get_layer("head")
    found.append(Part(["head.w"], [head.kernel]))
    if workload["head_bias"]:
        found.append(Part(["head.b"], [head.bias]))
    return found


# --- the program --------------------------------------------------------------------------------------


class KerasProgram(Program):
    """A compiled model, run by the same functions that `fit` and `predict` call. Backends add feeding and waiting.

    `train_on_batch` and `predict_on_batch` are not used: they copy every result to the host, and the device would
    wait for that.
    """

    def __init__(self, job, parameters):
        self._workload = job["workload"]
        self._cuda = job["device"] == "cuda"
        execution = parse_execution(job["execution"])
        keras.config.set_dtype_policy(POLICIES[job["precision"]])
        self._model = make_model(self._workload, job["granularity"], execution.unroll, execution.use_cudnn)
        self._parts = parts_of(self._model, self._workload)
        for part in self._parts:
            part.assign(parameters)
        self._optimiser = self.adam_of(job["execution"])(
            LEARNING_RATE,
            beta_1=BETA_1,
            beta_2=BETA_2,
            # Keras adds epsilon before the bias correction: scaled like this it is the published one at the first
            # step, and smaller later.
            epsilon=EPSILON * (1 - BETA_2) ** 0.5,
        )
        ctc = self._workload["loss"] == "ctc"
        self._model.compile(
            self._optimiser,
            loss=None if ctc else keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            run_eagerly=execution.run_eagerly,
            jit_compile=execution.jit_compile,
        )
        if job["phase"] == "train":
            self._optimiser.build(self._model.trainable_variables)
            if not ctc:
                # `fit` does this before its first step, too: PyTorch cannot compile a step that builds its loss.
                output = self._model.output
                self._model._compile_loss.build(keras.KerasTensor(output.shape[:-1], "int32"), output)
            self._model.make_train_function()
        else:
            self._model.make_predict_function()

    def adam_of(self, execution):
        """The class of the optimiser. A backend on which Keras's own is wrong has another one to offer."""
        return keras.optimizers.Adam

    # --- data ---

    def stage(self, batch):
        """The model's inputs and targets, in the form that Keras takes."""
        arrays = as_int32(with_lengths(batch, self._workload))
        inputs = [arrays["inputs"]]
        if self._workload["variable_length"]:
            inputs.append(arrays["lengths"])
        if self._workload["loss"] != "ctc":
            return inputs, arrays["targets"]
        return inputs, {name: arrays[name] for name in ("targets", "target_lengths", "lengths")}

    def feed(self, staged):
        return keras.tree.map_structure(self.to_device, staged)

    def to_device(self, array):
        """Start the copy of one array to the device."""
        raise NotImplementedError

    # --- computing ---

    def forward(self, fed):
        return self._model.predict_function([fed[:1]])

    def train(self, fed):
        # As `train_on_batch` does: a step returns the mean of all losses since the reset, here that of one batch.
        self._model.reset_metrics()
        return self._model.train_function([fed])["loss"]

    def function_of(self, phase, fed):
        """The function that `fit` or `predict` calls, and its argument for a batch: for `graphs`."""
        if phase == "train":
            return self._model.train_function, fed
        return self._model.predict_function, fed[:1]

    # --- reading back ---

    def update_variables(self):
        """Bring the model's variables up to date, where a backend keeps newer values elsewhere."""

    def loss(self, handle):
        return float(handle)

    def logits(self, handle):
        return host_copy(handle)

    def gradients(self, fed):
        """Read from the training step itself: Adam's first moment, starting from zero, becomes (1 - β1) × gradient."""
        self.update_variables()
        everything = self._model.trainable_variables + self._optimiser.variables
        before = [host_copy(variable) for variable in everything]
        moments = [variable for variable in self._optimiser.variables if variable.name.endswith("_momentum")]
        for moment in moments:
            moment.assign(np.zeros(moment.shape, np.float32))
        self.sync(self.train(fed))
        self.update_variables()
        moment_of = {id(variable): moment for variable, moment in zip(self._model.trainable_variables, moments)}
        gradients = {}
        for part in self._parts:
            gradients.update(part.read(lambda one: host_copy(moment_of[id(one)]) / (1 - BETA_1), join_bias_gradients))
        for variable, value in zip(everything, before):
            variable.assign(value)
        return gradients

    def parameters(self):
        self.update_variables()
        values = {}
        for part in self._parts:
            values.update(part.read(host_copy, join_bias_values))
        return values

    def parameter_count(self):
        return self._model.count_params()


def host_copy(tensor):
    """A copy, because on a CPU the array may be the variable's own memory."""
    return np.array(keras.ops.convert_to_numpy(tensor), np.float32)
