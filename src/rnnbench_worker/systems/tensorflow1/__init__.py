"""TensorFlow 1: a graph and a session. Its three LSTMs, each with its own way over time."""

from .builds import builds
from .graph import graphs
from .profiling import profiler
from .program import TensorFlow1Program
from .settings import describe_device

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    return describe_device(job)


def build(job, parameters):
    return TensorFlow1Program(job, parameters)
