"""OpenVINO: the PyTorch network converted and compiled for the CPU."""

from rnnbench_worker.systems.exported.builds import builds

from .compiling import apply_settings, describe_device
from .graph import graphs
from .profiling import profiler
from .program import CompiledProgram

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    return CompiledProgram(job, parameters)
