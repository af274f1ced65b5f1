"""TensorFlow 1: a graph and a session, and its three LSTMs, each with its own kind of loop over time."""

from .inspection import graphs, profiler
from .program import TensorFlow1Program, describe_device

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    return describe_device(job)


def build(job, parameters):
    return TensorFlow1Program(job, parameters)


def builds(program):
    """The graph is built once: its placeholders have fixed shapes, and a session rejects any other."""
    return int(program._fetches is not None)
