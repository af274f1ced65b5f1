"""The executions: each takes the network as written and returns what is called instead of it.

They are applied at the first call, with that call's inputs, so that the time of the first call includes all tracing
and compiling. A CUDA graph captures the whole step, so it is a program of its own.
"""

import sys

import torch

from .compat import allow_recompiling
from .network import ReadGradient, canonical
from .program import TorchProgram
from .stacks import FusedStack, LoopStack, ScanDirection


def eager(network, example):
    return network


def script(network, example):
    return torch.jit.script(network)


def trace(network, example):
    # check_trace would run everything again and compare, which the driver's verification does better.
    return torch.jit.trace(network, example, check_trace=False)


def compile_cell(network, example):
    """Each cell is compiled by itself; the loops around the cells stay in Python."""
    compile_cells([direction for layer in network.stack.layers for direction in layer])
    return network


def compile_cells(loops):
    _allow_many_shapes()
    for loop in loops:
        loop.cell = torch.compile(loop.cell, fullgraph=True, dynamic=False)


def compile_whole(network, example):
    """With fullgraph, because a part that silently stayed eager would be another execution under this name."""
    _allow_many_shapes()
    return torch.compile(network, fullgraph=True, dynamic=False)


def _allow_many_shapes():
    # The cells share one code object, which is compiled once for each input width. Without this, Dynamo gives up
    # after 8 versions and runs eagerly.
    allow_recompiling(64)


EXECUTIONS = {
    "eager": eager,
    "script": script,
    "trace": trace,
    "compile-cell": compile_cell,
    "compile": compile_whole,
    "compile-scan": compile_whole,
    "rnnfuse": eager,  # each layer compiles itself
}


def stack_for(workload, granularity, execution):
    """Layers of a cell: by a loop over time in Python, unless the execution has one of its own."""
    if execution == "rnnfuse":
        return FusedStack(workload, granularity)
    if execution == "compile-scan":
        return LoopStack(workload, granularity, ScanDirection)
    return LoopStack(workload, granularity)


# --- CUDA graphs --------------------------------------------------------------------------------------

WARM_UP_STEPS = 3


class CudaGraphProgram(TorchProgram):
    """A whole step, captured once and replayed without Python and without launching kernels one by one.

    Inputs are copied into the buffers that the graph was captured with.
    """

    def __init__(self, job, network, wrap):
        super(CudaGraphProgram, self).__init__(job, network, wrap)
        self._buffers = None
        self._graph = None
        self._result = None

    def optimiser_options(self):
        return {"capturable": True}

    def feed(self, staged):
        if self._buffers is None:
            self._buffers = super(CudaGraphProgram, self).feed(staged)
        else:
            for name, buffer in self._buffers.items():
                buffer.copy_(staged[name], non_blocking=True)
        return self._buffers

    def forward(self, fed):
        return self._replay(super(CudaGraphProgram, self).forward, fed)

    def train(self, fed):
        return self._replay(super(CudaGraphProgram, self).train, fed)

    def gradients(self, fed):
        """A replayed training step leaves its gradients in place; what it changed is restored."""
        if self._graph is None:
            self._capture(super(CudaGraphProgram, self).train, fed)
        before = self._snapshot()
        self._graph.replay()
        torch.cuda.synchronize()
        gradients = canonical(self._network, self._workload, ReadGradient())
        self._restore(before)
        return gradients

    def _replay(self, step, fed):
        if self._graph is None:
            self._capture(step, fed)
        self._graph.replay()
        return self._result

    def _capture(self, step, fed):
        """Warm up on a side stream, as capturing requires, then undo what the warm-up steps changed."""
        before = self._snapshot()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP_STEPS):
                step(fed)
        torch.cuda.current_stream().wait_stream(side)
        self._optimiser.zero_grad(set_to_none=True)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._result = step(fed)
        self._restore(before)

    def _snapshot(self):
        return [parameter.detach().clone() for parameter in self._network.parameters()], [
            (tensor, tensor.clone()) for tensor in self._optimiser_tensors()
        ]

    def _restore(self, snapshot):
        values, moments = snapshot
        with torch.no_grad():
            for parameter, value in zip(self._network.parameters(), values):
                parameter.copy_(value)
            known = {id(tensor): value for tensor, value in moments}
            for tensor in self._optimiser_tensors():
                # A tensor that did not exist before the first step starts from zero.
                tensor.copy_(known[id(tensor)]) if id(tensor) in known else tensor.zero_()
        torch.cuda.synchronize()

    def _optimiser_tensors(self):
        return [value for state in self._optimiser.state.values() for value in state.values() if torch.is_tensor(value)]


# --- counting -----------------------------------------------------------------------------------------


def builds(program):
    """Graphs that torch.compile or rnnfuse has compiled, or captures of a CUDA graph. TorchScript does not count."""
    if isinstance(program, CudaGraphProgram):
        return int(program._graph is not None)
    if isinstance(program._wrapped, torch.jit.ScriptModule):
        return None
    return compiled_graph_count() + getattr(program._network.stack, "compilations", 0)


def compiled_graph_count():
    """In this process, by Dynamo's own counter. Where nothing is compiled, Dynamo is not even imported."""
    if "torch._dynamo" not in sys.modules:
        return 0
    return sys.modules["torch._dynamo.utils"].counters["stats"]["unique_graphs"]
