"""Keras on JAX: its steps are pure functions of a state, which is kept outside the model's variables, as in `fit`."""

import jax
import numpy as np

from rnnbench_worker.shared.keras import KerasProgram, add_keras_version
from rnnbench_worker.systems.jax.inspection import profiler, record_operators, traced_graphs
from rnnbench_worker.systems.jax.program import builds
from rnnbench_worker.systems.jax.settings import apply_settings, describe_device, device_name, peak_bytes

__all__ = ["build", "builds", "describe", "graphs", "profiler", "prove"]


def describe(job):
    apply_settings(job)
    return add_keras_version(describe_device(job))


def build(job, parameters):
    return KerasJaxProgram(job, parameters)


def prove(job, ability, arrays):
    from rnnbench_worker.shared.keras_abilities import prove

    return prove(job, ability, arrays, lambda function, xs: jax.grad(function)(xs), builds)


def graphs(job, make):
    """JAX's graphs of the function that `fit` or `predict` calls."""
    program, fed = make()
    if job["execution"].startswith("eager"):
        return [record_operators(lambda: program.call_of(job["phase"])(fed))]
    function, data = program.function_of(job["phase"], fed)
    # Keras's function takes an iterator and jits inside: wrapped like this it can be traced as one call.
    return traced_graphs(jax.jit(lambda state: function(state, iter([data]))).trace(program._take_state()))


class KerasJaxProgram(KerasProgram):
    def __init__(self, job, parameters):
        super(KerasJaxProgram, self).__init__(job, parameters)
        model = self._model
        self._groups = [model.trainable_variables, model.non_trainable_variables]
        if job["phase"] == "train":
            self._groups += [self._optimiser.variables, model.metrics_variables]
        self._device = next(iter(model.trainable_variables[0].value.devices()))
        self._state = None  # None: the model's variables hold it

    @property
    def device(self):
        return device_name(self._device)

    def to_device(self, array):
        # Not to an explicit device: results committed to one would make JAX compile a step again at its second call.
        return jax.device_put(array)

    def _take_state(self):
        """The state; the first one comes from the model's variables, whose memory the next step takes over."""
        if self._state is None:
            self._state = tuple([variable.value for variable in group] for group in self._groups)
        return self._state

    def forward(self, fed):
        logits, self._state = self._model.predict_function(self._take_state(), iter([fed[:1]]))
        return logits

    def train(self, fed):
        # The last part is the metrics, reset as `train_on_batch` does, so that the loss is that of one batch.
        state = self._take_state()[:3] + ([np.zeros(v.shape, v.dtype) for v in self._groups[3]],)
        logs, self._state = self._model.train_function(state, iter([fed]))
        return logs["loss"]

    def sync(self, handle):
        # The state as well: the loss is ready before the update is.
        jax.block_until_ready((handle, self._state))

    def update_variables(self):
        for group, values in zip(self._groups, self._state or ()):
            for variable, value in zip(group, values):
                variable.assign(value)
        self._state = None

    def peak_device_bytes(self):
        return peak_bytes(self._device)
