"""Lasagne on Theano."""

from rnnbench_worker.program import built_once as builds
from rnnbench_worker.shared.theano import describe_device, graphs, profiler

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    description = describe_device(job)
    from .program import lasagne

    description["versions"]["lasagne"] = lasagne.__version__
    return description


def build(job, parameters):
    from .program import LasagneProgram  # imports Theano, after its settings

    return LasagneProgram(job, parameters)
