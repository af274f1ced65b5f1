"""Keras on JAX: its steps are pure functions of a state, which stays outside the model's variables as in `fit`."""

import jax
import numpy as np

from rnnbench_worker.systems.jax.settings import device_name

from .program import KerasProgram


class JaxProgram(KerasProgram):
    def __init__(self, job, parameters):
        super(JaxProgram, self).__init__(job, parameters)
        model = self._model
        self._groups = [model.trainable_variables, model.non_trainable_variables]
        if job["phase"] == "train":
            self._groups += [self._optimiser.variables, model.metrics_variables]
        self._device = next(iter(model.trainable_variables[0].value.devices()))
        self._state = None  # the variables have it

    @property
    def device(self):
        return device_name(self._device)

    def put(self, array):
        # Not to a device by name: results bound to one would have a step compiled again at its second call.
        return jax.device_put(array)

    def _take_state(self):
        """From the variables, whose memory the next step is given and reuses."""
        if self._state is None:
            self._state = tuple([variable.value for variable in group] for group in self._groups)
        return self._state

    def forward(self, fed):
        logits, self._state = self._model.predict_function(self._take_state(), iter([fed[:1]]))
        return logits

    def train(self, fed):
        # The last part are the metrics, reset as `train_on_batch` does: the loss is that of one batch.
        state = self._take_state()[:3] + ([np.zeros(v.shape, v.dtype) for v in self._groups[3]],)
        logs, self._state = self._model.train_function(state, iter([fed]))
        return logs["loss"]

    def sync(self, handle):
        # The loss is ready before the update is.
        jax.block_until_ready((handle, self._state))

    def settle(self):
        for group, values in zip(self._groups, self._state or ()):
            for variable, value in zip(group, values):
                variable.assign(value)
        self._state = None

    def peak_device_bytes(self):
        statistics = self._device.memory_stats()  # none on a CPU
        return statistics.get("peak_bytes_in_use") if statistics else None
