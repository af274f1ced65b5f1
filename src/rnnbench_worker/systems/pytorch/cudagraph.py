"""A whole step captured once as a CUDA graph and replayed: no Python, no launches one by one."""

import torch

from .network import ReadGradient, canonical
from .program import TorchProgram

WARM_UP_STEPS = 3


class GraphProgram(TorchProgram):
    """Inputs are copied into the buffers the graph was captured with; then it is replayed."""

    def __init__(self, job, network, wrap):
        super(GraphProgram, self).__init__(job, network, wrap)
        self._buffers = None
        self._graph = None
        self._result = None

    def optimiser_options(self):
        return {"capturable": True}

    def feed(self, staged):
        if self._buffers is None:
            self._buffers = super(GraphProgram, self).feed(staged)
        else:
            for name, buffer in self._buffers.items():
                buffer.copy_(staged[name], non_blocking=True)
        return self._buffers

    def forward(self, fed):
        return self._replay(super(GraphProgram, self).forward, fed)

    def train(self, fed):
        return self._replay(super(GraphProgram, self).train, fed)

    def gradients(self, fed):
        """A replayed training step leaves its gradients behind; what it changed is put back."""
        if self._graph is None:
            self._capture(super(GraphProgram, self).train, fed)
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
        """Warm up on a side stream, as capturing demands, then undo what the warm-up steps changed."""
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
                # Before the first step there are no moments: then they start from zero.
                tensor.copy_(known[id(tensor)]) if id(tensor) in known else tensor.zero_()
        torch.cuda.synchronize()

    def _optimiser_tensors(self):
        return [value for state in self._optimiser.state.values() for value in state.values() if torch.is_tensor(value)]
