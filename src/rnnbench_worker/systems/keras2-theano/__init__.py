"""Keras 2 on Theano."""

from rnnbench_worker.program import built_once as builds
from rnnbench_worker.shared.theano import describe_device, graphs, profiler

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    description = describe_device(job)  # before Keras, which imports Theano
    from rnnbench_worker.shared.keras2 import add_keras_version

    return add_keras_version(description)


def build(job, parameters):
    from rnnbench_worker.shared.keras2 import Keras2Program  # imports Theano, after its settings

    return Keras2Program(job, parameters, gate=unchanged)


def unchanged(gradients):
    """No gate is needed: a function of Theano computes everything before it updates anything."""
    return gradients
