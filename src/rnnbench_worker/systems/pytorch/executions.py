"""The executions: each takes the network as written and returns what is called in its place.

They are applied at the first call, with that call's inputs, so that the first call's time holds all
tracing and compiling.
"""

import torch

from .compat import allow_recompiling
from .scan import ScanDirection
from .stacks import Direction


def eager(network, example):
    return network


def script(network, example):
    return torch.jit.script(network)


def trace(network, example):
    # check_trace would run it all again to compare: the driver's verification does that better.
    return torch.jit.trace(network, example, check_trace=False)


def compile_cell(network, example):
    """Each cell compiled by itself; the loops around them stay in Python."""
    _allow_many_shapes()
    for layer in network.stack.layers:
        for direction in layer:
            direction.cell = torch.compile(direction.cell, fullgraph=True, dynamic=False)
    return network


def compile_whole(network, example):
    """fullgraph: a part that silently stayed eager would be another execution under this name."""
    _allow_many_shapes()
    return torch.compile(network, fullgraph=True, dynamic=False)


def _allow_many_shapes():
    # The cells share one code object, and each input width is a version of it. Dynamo gives up
    # (and runs eagerly) after 8 unless told otherwise.
    allow_recompiling(64)


EXECUTIONS = {
    "eager": eager,
    "script": script,
    "trace": trace,
    "compile-cell": compile_cell,
    "compile": compile_whole,
    "compile-scan": compile_whole,
}

#: Which class runs one layer in one direction; a Python loop unless named here.
DIRECTIONS = {"compile-scan": ScanDirection}


def direction_for(execution):
    return DIRECTIONS.get(execution, Direction)
