"""Keras 2: the network and the program that its backends share. Each folder keras2-… chooses a backend.

The network uses only Keras's layers and its backend's functions, so that it serves both TensorFlow and Theano. Keras
imports its backend, so this module is imported after the backend's settings are made.
"""

import keras
import numpy as np
from keras import backend as K
from keras import layers
from keras.models import Model
from keras.optimizers import Adam

from rnnbench_worker.canonical import (
    as_int32,
    blank_first,
    blank_last,
    labels_before_blank,
    layer_directions,
    step_mask,
    weight_names,
    with_lengths,
)
from rnnbench_worker.program import BETA_1, BETA_2, EPSILON, LEARNING_RATE, Program


def add_keras_version(description):
    """A backend's description with the version of Keras added."""
    description["versions"]["keras"] = keras.__version__
    return description


# --- the network --------------------------------------------------------------------------------------


class MaskByLength(layers.Layer):
    """Returns its first input, with the mask that Keras's layers pass on: the steps within the lengths."""

    def __init__(self, steps):
        super(MaskByLength, self).__init__()
        self.supports_masking = True
        self._steps = steps

    def call(self, inputs, mask=None):
        return inputs[0]

    def compute_mask(self, inputs, mask=None):
        inside = step_mask(K.arange(self._steps), inputs[1][:, 0])
        return K.permute_dimensions(inside, (1, 0, 2))[:, :, 0]

    def compute_output_shape(self, shapes):
        return shapes[0]


def make_model(workload):
    """A model of embedding or features, recurrent layers and head, called with inputs, and with lengths if they vary.

    It returns `[batch, steps, classes]` or `[batch, classes]`.
    """
    batch, steps = workload["batch"], workload["steps"]
    last_step = workload["head_on"] == "last-step"
    bidirectional = len(workload["directions"]) == 2
    if workload["vocabulary"]:
        inputs = [layers.Input(batch_shape=(batch, steps), dtype="int32")]
        xs = layers.Embedding(workload["vocabulary"], workload["embedding"])(inputs[0])
    else:
        inputs = [layers.Input(batch_shape=(batch, steps, workload["features"]))]
        xs = inputs[0]
    if workload["variable_length"]:
        inputs.append(layers.Input(batch_shape=(batch, 1), dtype="int32"))
        xs = MaskByLength(steps)([xs, inputs[1]])
    for layer in range(workload["layers"]):
        lstm = layers.LSTM(
            workload["hidden"],
            # Keras 2's default is a piecewise linear function, which would be another network.
            recurrent_activation="sigmoid",
            unit_forget_bias=False,
            # For the backward direction Keras would return the step it computed last, which is the first in time.
            return_sequences=bidirectional or not last_step or layer < workload["layers"] - 1,
        )
        xs = (layers.Bidirectional(lstm) if bidirectional else lstm)(xs)
    if last_step and bidirectional:
        xs = layers.Lambda(take_last_step, output_shape=(2 * workload["hidden"],))(xs)
    logits = layers.Dense(workload["classes"], use_bias=workload["head_bias"])(xs)
    return Model(inputs, logits)


def take_last_step(xs):
    return xs[:, -1]


def cross_entropy(workload):
    """A loss as `compile` takes it: one number for each prediction, `[batch]` or `[batch, steps]`."""

    def loss(targets, logits):
        # As a matrix, which is all that Theano's softmax takes.
        flat = K.reshape(logits, (-1, workload["classes"]))
        losses = K.sparse_categorical_crossentropy(K.flatten(targets), flat, from_logits=True)
        return losses if workload["head_on"] == "last-step" else K.reshape(losses, (-1, workload["steps"]))

    return loss


def with_ctc(model, workload):
    """A model of the loss, as users of Keras 2 write CTC: labels and lengths are inputs, the loss is the output."""
    batch = workload["batch"]
    lengths, labels, label_lengths = [
        layers.Input(batch_shape=(batch, width), dtype="int32") for width in (1, workload["labels"], 1)
    ]
    inputs = list(model.inputs)
    if workload["variable_length"]:
        lengths = inputs.pop()

    def cost(tensors):
        logits, labels, lengths, label_lengths = tensors
        return K.ctc_batch_cost(labels, K.softmax(logits), lengths, label_lengths)

    costs = layers.Lambda(cost, output_shape=(1,))([model.output, labels, lengths, label_lengths])
    return Model(inputs + [lengths, labels, label_lengths], costs)


def variables_of(model, workload):
    """Every variable by its canonical name; Keras has the canonical layout and lists them in order of computation."""
    found = [name for place in layer_directions(workload) for name in weight_names(*place)]
    if workload["vocabulary"]:
        found = ["embedding"] + found
    found += ["head.w", "head.b"] if workload["head_bias"] else ["head.w"]
    return dict(zip(found, model.trainable_weights))


# --- the program --------------------------------------------------------------------------------------


class GatedAdam(Adam):
    """Keras 2's own Adam, with all gradients computed before the first update is made.

    `gate` takes the gradients and returns them. Without it, an update on TensorFlow could come before a gradient that
    still needs the old weights (docs/findings.md).
    """

    def __init__(self, gate):
        # Keras adds epsilon before the bias correction: scaled like this it is the published one at the first step,
        # and smaller later.
        super(GatedAdam, self).__init__(LEARNING_RATE, BETA_1, BETA_2, epsilon=EPSILON * (1 - BETA_2) ** 0.5)
        self._gate = gate

    def get_gradients(self, loss, params):
        return self._gate(super(GatedAdam, self).get_gradients(loss, params))


class Keras2Program(Program):
    """A compiled model, run by the same functions that `fit` and `predict` call, which return when they are finished.

    The backends differ only in the gate between gradients and updates.
    """

    def __init__(self, job, parameters, gate):
        self._workload = job["workload"]
        self._ctc = self._workload["loss"] == "ctc"
        self._model = make_model(self._workload)
        self._variables = variables_of(self._model, self._workload)
        K.batch_set_value(
            [(self._variables[name], self._to_own_layout(name, array)) for name, array in parameters.items()]
        )
        self._train_phase = job["phase"] == "train"
        if self._train_phase:
            self._optimiser = GatedAdam(gate)
            self._trained = with_ctc(self._model, self._workload) if self._ctc else self._model
            self._trained.compile(self._optimiser, loss=output_as_loss if self._ctc else cross_entropy(self._workload))

    # --- data ---

    def stage(self, batch):
        """The arguments of Keras's functions: the model's inputs and, for training, its targets and their weights."""
        arrays = as_int32(with_lengths(batch, self._workload))
        inputs = [arrays["inputs"]]
        if self._workload["variable_length"] or (self._ctc and self._train_phase):
            inputs.append(arrays["lengths"][:, None])
        if not self._train_phase:
            return inputs
        weights = np.ones(len(arrays["inputs"]), np.float32)
        if self._ctc:
            labels = labels_before_blank(arrays["targets"])
            return inputs + [labels, arrays["target_lengths"][:, None], weights[:, None], weights]
        return inputs + [arrays["targets"][..., None].astype(np.float32), weights]

    def feed(self, staged):
        """Keras's functions take host arrays."""
        return staged

    # --- computing ---

    def forward(self, fed):
        self._model._make_predict_function()  # at the first call
        return self._model.predict_function(fed)[0]

    def train(self, fed):
        if self._trained.train_function is None:
            self._trained._make_train_function()
        return self._trained.train_function(fed)[0]

    @property
    def function(self):
        """Keras's function for the phase; None before the first call."""
        if self._train_phase:
            return self._trained.train_function
        return getattr(self._model, "predict_function", None)  # a model that is not compiled has no such attribute yet

    # --- reading back ---

    def loss(self, handle):
        return float(handle)

    def logits(self, handle):
        return blank_first(handle) if self._ctc else np.asarray(handle)

    def gradients(self, fed):
        """Read from the training step itself: Adam's first moment, starting from zero, becomes (1 - β1) × gradient."""
        self._trained._make_train_function()
        weights = self._trained.trainable_weights
        moments = self._optimiser.weights[1 : 1 + len(weights)]
        everything = weights + self._optimiser.weights
        before = K.batch_get_value(everything)
        K.batch_set_value([(moment, np.zeros(K.int_shape(moment), np.float32)) for moment in moments])
        self.train(fed)
        moment_of = {id(weight): moment for weight, moment in zip(weights, moments)}
        found = K.batch_get_value([moment_of[id(weight)] for weight in self._variables.values()])
        K.batch_set_value(list(zip(everything, before)))
        return {name: self._to_canonical(name, value / (1 - BETA_1)) for name, value in zip(self._variables, found)}

    def parameters(self):
        values = K.batch_get_value(list(self._variables.values()))
        return {name: self._to_canonical(name, value) for name, value in zip(self._variables, values)}

    def parameter_count(self):
        return int(self._model.count_params())

    def _to_own_layout(self, name, array):
        return blank_last(array) if self._ctc and name.startswith("head") else array

    def _to_canonical(self, name, array):
        return blank_first(array) if self._ctc and name.startswith("head") else array


def output_as_loss(targets, costs):
    """The loss of a model whose output is its loss already."""
    return costs
