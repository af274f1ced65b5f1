"""Keras on PyTorch."""

import os

from rnnbench_worker.systems.pytorch.executions import compiled_graph_count
from rnnbench_worker.systems.pytorch.inspection import profiler, record_graphs
from rnnbench_worker.systems.pytorch.settings import apply_settings, describe_device

__all__ = ["build", "builds", "describe", "graphs", "profiler", "prove"]


def describe(job):
    apply_settings(job)
    # Otherwise Keras takes a GPU wherever there is one. It reads the variable when it is imported.
    os.environ["KERAS_TORCH_DEVICE"] = job["device"]
    from rnnbench_worker.shared.keras import add_keras_version

    return add_keras_version(describe_device(job))


def build(job, parameters):
    from .program import KerasTorchProgram  # imports Keras

    return KerasTorchProgram(job, parameters)


def builds(program):
    return compiled_graph_count()


def prove(job, ability, arrays):
    import torch

    from rnnbench_worker.shared.keras_abilities import prove

    def input_gradient(function, xs):
        xs = xs.detach().requires_grad_()
        return torch.autograd.grad(function(xs), xs, create_graph=True)[0]

    return prove(job, ability, arrays, input_gradient, lambda model: compiled_graph_count())


def graphs(job, make):
    with record_graphs() as recorded:
        program, fed = make()
        program.call_of(job["phase"])(fed)
    return recorded.as_list()
