"""A Keras 2 model as a program: compiled, and stepped by the very functions that `fit` and `predict` call."""

import numpy as np
from keras import backend as K

from rnnbench_worker.batches import as_int32, with_lengths
from rnnbench_worker.program import Program
from rnnbench_worker.systems.blank_last import blank_first, blank_last, labels_before_blank
from rnnbench_worker.training import BETA_1

from .adam import GatedAdam
from .network import cross_entropy, make_model, variables_of, with_ctc


class Keras2Program(Program):
    """The same on both backends, but for the gate between gradients and updates. Calls return when they are done."""

    def __init__(self, job, parameters, gate):
        self._workload = job["workload"]
        self._ctc = self._workload["loss"] == "ctc"
        self._model = make_model(self._workload)
        self._variables = variables_of(self._model, self._workload)
        K.batch_set_value([(self._variables[name], self._own(name, array)) for name, array in parameters.items()])
        self._train_phase = job["phase"] == "train"
        if self._train_phase:
            self._optimiser = GatedAdam(gate)
            self._trained = with_ctc(self._model, self._workload) if self._ctc else self._model
            self._trained.compile(self._optimiser, loss=as_it_is if self._ctc else cross_entropy(self._workload))

    # --- data ---

    def stage(self, batch):
        """What the functions take: the model's inputs and, for a training step, its targets and their weights."""
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
        """A function takes arrays of the host."""
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
        """Keras's own, which runs a batch of the phase; None before the first."""
        if self._train_phase:
            return self._trained.train_function
        return getattr(self._model, "predict_function", None)  # a model that is not compiled has no such name yet

    # --- reading back ---

    def loss(self, handle):
        return float(handle)

    def logits(self, handle):
        return blank_first(handle) if self._ctc else np.asarray(handle)

    def gradients(self, fed):
        """Read from the training step itself: from nothing, Adam's first moment becomes (1 - β1) × gradient."""
        self._trained._make_train_function()
        weights = self._trained.trainable_weights
        moments = self._optimiser.weights[1 : 1 + len(weights)]
        everything = weights + self._optimiser.weights
        before = K.batch_get_value(everything)
        K.batch_set_value([(moment, np.zeros(K.int_shape(moment), np.float32)) for moment in moments])
        self.train(fed)
        of = {id(weight): moment for weight, moment in zip(weights, moments)}
        found = K.batch_get_value([of[id(weight)] for weight in self._variables.values()])
        K.batch_set_value(list(zip(everything, before)))
        return {name: self._canonical(name, value / (1 - BETA_1)) for name, value in zip(self._variables, found)}

    def parameters(self):
        values = K.batch_get_value(list(self._variables.values()))
        return {name: self._canonical(name, value) for name, value in zip(self._variables, values)}

    def parameter_count(self):
        return int(self._model.count_params())

    def _own(self, name, array):
        return blank_last(array) if self._ctc and name.startswith("head") else array

    def _canonical(self, name, array):
        return blank_first(array) if self._ctc and name.startswith("head") else array


def as_it_is(targets, costs):
    """The loss of a model whose output is its cost."""
    return costs
