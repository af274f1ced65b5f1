"""Keras on TensorFlow."""

from rnnbench_worker.systems.keras import with_version
from rnnbench_worker.systems.keras.on_tensorflow import TensorFlowProgram
from rnnbench_worker.systems.tensorflow.builds import tracings
from rnnbench_worker.systems.tensorflow.profiling import profiler
from rnnbench_worker.systems.tensorflow.settings import apply_settings, describe_device

from .graph import graphs

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    apply_settings(job)
    return with_version(describe_device(job))


def build(job, parameters):
    return TensorFlowProgram(job, parameters)


def builds(program):
    return tracings(program._model.train_function) + tracings(program._model.predict_function)
