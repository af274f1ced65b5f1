"""Keras on TensorFlow."""

import keras
import tensorflow as tf

from rnnbench_worker.shared.keras import KerasProgram, add_keras_version
from rnnbench_worker.systems.tensorflow.inspection import function_graphs, profiler
from rnnbench_worker.systems.tensorflow.program import tracing_count
from rnnbench_worker.systems.tensorflow.settings import (
    apply_settings,
    describe_device,
    device_of,
    device_string,
    peak_bytes,
    wait_for_device,
)

__all__ = ["build", "builds", "describe", "graphs", "profiler", "prove"]


def describe(job):
    apply_settings(job)
    return add_keras_version(describe_device(job))


def build(job, parameters):
    return KerasTensorFlowProgram(job, parameters)


def builds(program):
    return tracing_count(program._model.train_function) + tracing_count(program._model.predict_function)


def prove(job, ability, arrays):
    from rnnbench_worker.shared.keras_abilities import prove

    def input_gradient(function, xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            size = function(xs)
        return tape.gradient(size, xs)

    with tf.device(device_string(job)):
        return prove(job, ability, arrays, input_gradient, lambda model: tracing_count(model.train_function))


def graphs(job, make):
    """TensorFlow's graphs of the tf.function inside the function that `fit` or `predict` calls."""
    program, fed = make()
    function, data = program.function_of(job["phase"], fed)
    if job["execution"].startswith("eager"):
        return function_graphs(function, ([data],), xla=False)
    program.call_of(job["phase"])(fed)
    (traced,) = [one for one in tf_functions_in(function) if one.experimental_get_tracing_count()]
    return function_graphs(traced, (data,), job["execution"].startswith("xla"))


def tf_functions_in(function, depth=4):
    """Every tf.function in the closure of a Python function, or the function itself if it is one."""
    if hasattr(function, "experimental_get_tracing_count"):
        return [function]
    cells = getattr(function, "__closure__", None) or ()
    inside = [cell.cell_contents for cell in cells] if depth else []
    return [found for one in inside if callable(one) for found in tf_functions_in(one, depth - 1)]


class DenseAdam(keras.optimizers.Adam):
    """Keras's Adam with the gradient of an embedding as one array, in which all uses of a row are added up.

    TensorFlow gives the gradient of each use, and Keras squares those one by one (docs/findings.md).
    """

    def apply(self, grads, trainable_variables=None):
        dense = [tf.convert_to_tensor(gradient) for gradient in grads]
        return super(DenseAdam, self).apply(dense, trainable_variables)


def sparse_ctc(targets, logits, target_lengths, lengths, mask_index):
    """TensorFlow's CTC with sparse labels. With dense ones, as Keras calls it, it stops at 707 (docs/findings.md)."""
    labels = tf.sparse.from_dense(targets)
    return tf.nn.ctc_loss(labels, logits, target_lengths, lengths, logits_time_major=False, blank_index=mask_index)


class KerasTensorFlowProgram(KerasProgram):
    def __init__(self, job, parameters):
        super(KerasTensorFlowProgram, self).__init__(job, parameters)
        self._device_string = device_string(job)
        if job["execution"].endswith("-dense"):
            self._model.ctc_loss = sparse_ctc

    def adam_of(self, execution):
        return DenseAdam if execution.endswith("-dense") else keras.optimizers.Adam

    @property
    def device(self):
        return device_of(self._model.trainable_variables[0].value)

    def to_device(self, array):
        with tf.device(self._device_string):
            return tf.convert_to_tensor(array)

    def sync(self, handle):
        wait_for_device(self._device_string)

    def peak_device_bytes(self):
        return peak_bytes(self._device_string)
