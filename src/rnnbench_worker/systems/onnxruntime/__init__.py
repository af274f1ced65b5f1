"""ONNX Runtime: the PyTorch network written as ONNX and run in a session."""

from .graph import graphs
from .program import SessionProgram
from .sessions import apply_settings, describe_device

__all__ = ["build", "describe", "graphs"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    return SessionProgram(job, parameters)
