"""ONNX Runtime: the PyTorch network written as ONNX and run in a session."""

from rnnbench_worker.systems.exported.builds import builds

from .graph import graphs
from .profiling import profiler
from .program import SessionProgram
from .sessions import apply_settings, describe_device

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    return SessionProgram(job, parameters)
