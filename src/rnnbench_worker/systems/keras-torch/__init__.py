"""Keras on PyTorch."""

import os

from rnnbench_worker.systems.keras import with_version
from rnnbench_worker.systems.pytorch.builds import compiled_graphs
from rnnbench_worker.systems.pytorch.profiling import profiler
from rnnbench_worker.systems.pytorch.settings import apply_settings, describe_device

from .graph import graphs

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    apply_settings(job)
    # Otherwise Keras takes a GPU wherever there is one.
    os.environ["KERAS_TORCH_DEVICE"] = job["device"]
    return with_version(describe_device(job))


def build(job, parameters):
    from rnnbench_worker.systems.keras.on_torch import TorchProgram  # imports Keras, which looks at the variable

    return TorchProgram(job, parameters)


def builds(program):
    return compiled_graphs()
