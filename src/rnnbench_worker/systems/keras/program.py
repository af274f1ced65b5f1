"""A Keras model as a program: compiled, and stepped by the very functions that `fit` and `predict` call."""

import keras
import numpy as np

from rnnbench_worker.batches import as_int32, with_lengths
from rnnbench_worker.program import Program
from rnnbench_worker.training import BETA_1, BETA_2, EPSILON, LEARNING_RATE

from .executions import execution_of
from .network import make_model, variables_of

#: What layers compute in, as Keras calls it; variables are fp32 in all.
POLICIES = {"fp32": "float32", "tf32": "float32", "bf16": "mixed_bfloat16"}


class KerasProgram(Program):
    """What is the same on every backend; a backend's own knows how to feed it and how to wait for it.

    `train_on_batch` and `predict_on_batch` are not called: they bring every result to the host, and the
    device would wait for it.
    """

    def __init__(self, job, parameters):
        self._workload = job["workload"]
        self._cuda = job["device"] == "cuda"
        execution = execution_of(job["execution"])
        keras.config.set_dtype_policy(POLICIES[job["precision"]])
        self._model = make_model(self._workload, execution.unroll, execution.use_cudnn)
        self._variables = variables_of(self._model, self._workload)
        for name, variable in self._variables.items():
            variable.assign(parameters[name])
        self._optimiser = keras.optimizers.Adam(
            LEARNING_RATE,
            beta_1=BETA_1,
            beta_2=BETA_2,
            # Keras adds it to the root before that is corrected: the published one at the first step, and less later.
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
                # As `fit` does before its first step: PyTorch fails to compile a step that builds its loss.
                output = self._model.output
                self._model._compile_loss.build(keras.KerasTensor(output.shape[:-1], "int32"), output)
            self._model.make_train_function()
        else:
            self._model.make_predict_function()

    # --- data ---

    def stage(self, batch):
        """The model's inputs and its targets, as Keras is given them."""
        arrays = as_int32(with_lengths(batch, self._workload))
        inputs = [arrays["inputs"]]
        if self._workload["variable_length"]:
            inputs.append(arrays["lengths"])
        if self._workload["loss"] != "ctc":
            return inputs, arrays["targets"]
        return inputs, {name: arrays[name] for name in ("targets", "target_lengths", "lengths")}

    def feed(self, staged):
        return keras.tree.map_structure(self.put, staged)

    def put(self, array):
        """An array on its way to the device."""
        raise NotImplementedError

    # --- computing ---

    def forward(self, fed):
        return self._model.predict_function([fed[:1]])

    def train(self, fed):
        # As `train_on_batch` does: what comes back is the mean of all losses since, here that of one batch.
        self._model.reset_metrics()
        return self._model.train_function([fed])["loss"]

    def function_of(self, phase, fed):
        """What `fit` or `predict` calls, and what it takes of a batch: for `graphs`."""
        if phase == "train":
            return self._model.train_function, fed
        return self._model.predict_function, fed[:1]

    # --- reading back ---

    def settle(self):
        """See that the model's variables hold what was computed last."""

    def loss(self, handle):
        return float(handle)

    def logits(self, handle):
        return host(handle)

    def gradients(self, fed):
        """Read from the training step itself: from nothing, Adam's first moment becomes (1 - β1) × gradient."""
        self.settle()
        everything = self._model.trainable_variables + self._optimiser.variables
        before = [host(variable) for variable in everything]
        moments = [variable for variable in self._optimiser.variables if variable.name.endswith("_momentum")]
        for moment in moments:
            moment.assign(np.zeros(moment.shape, np.float32))
        self.sync(self.train(fed))
        self.settle()
        of = {id(variable): moment for variable, moment in zip(self._model.trainable_variables, moments)}
        found = {name: host(of[id(variable)]) / (1 - BETA_1) for name, variable in self._variables.items()}
        for variable, value in zip(everything, before):
            variable.assign(value)
        return found

    def parameters(self):
        self.settle()
        return {name: host(variable) for name, variable in self._variables.items()}

    def parameter_count(self):
        return self._model.count_params()


def host(tensor):
    """A copy: on a CPU the array may be the variable's own memory."""
    return np.array(keras.ops.convert_to_numpy(tensor), np.float32)
