"""Lasagne on Theano."""

from rnnbench_worker.program import built_once as builds
from rnnbench_worker.systems.theano.inspection import graphs, profiler
from rnnbench_worker.systems.theano.settings import describe_device

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    description = describe_device(job)
    from .imported import lasagne

    description["versions"]["lasagne"] = lasagne.__version__
    return description


def build(job, parameters):
    from .program import LasagneProgram  # imports Theano, whose settings come first

    return LasagneProgram(job, parameters)
