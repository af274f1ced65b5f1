"""Keras 2 on Theano."""

from rnnbench_worker.program import built_once as builds
from rnnbench_worker.systems.keras2 import with_version
from rnnbench_worker.systems.theano.inspection import graphs, profiler
from rnnbench_worker.systems.theano.settings import describe_device

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    return with_version(describe_device(job))


def build(job, parameters):
    from rnnbench_worker.systems.keras2.program import Keras2Program  # imports Theano, whose settings come first

    return Keras2Program(job, parameters, gate=as_they_are)


def as_they_are(gradients):
    """A function of Theano's computes everything before it updates anything."""
    return gradients
