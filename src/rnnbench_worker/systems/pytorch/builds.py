"""How often PyTorch has compiled."""

import sys

import torch

from .cudagraph import GraphProgram


def builds(program):
    """Graphs that torch.compile has made, or captures of a CUDA graph. TorchScript's executor tells nobody."""
    if isinstance(program, GraphProgram):
        return int(program._graph is not None)
    if isinstance(program._wrapped, torch.jit.ScriptModule):
        return None
    return compiled_graphs()


def compiled_graphs():
    """In this process, by Dynamo's own counter. Where nothing is compiled it is not even imported."""
    if "torch._dynamo" not in sys.modules:
        return 0
    return sys.modules["torch._dynamo.utils"].counters["stats"]["unique_graphs"]
