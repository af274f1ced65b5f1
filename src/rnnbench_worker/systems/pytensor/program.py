"""A PyTensor network as a program: shared variables, and a function of them compiled at its first call."""

import numpy as np
import pytensor
import pytensor.tensor as pt

from rnnbench_worker.batches import steps_first
from rnnbench_worker.systems.theano.program import FunctionProgram, host
from rnnbench_worker.training import BETA_1

from .adam import Adam
from .losses import loss_of
from .network import logits_of


class PyTensorProgram(FunctionProgram):
    """A function with inputs of fixed shapes."""

    def __init__(self, job, mode, parameters):
        super(PyTensorProgram, self).__init__(job)
        self._mode = mode
        self._parameters = {
            name: pytensor.shared(array, name=name, shape=array.shape) for name, array in parameters.items()
        }
        self._optimiser = Adam(self._parameters) if job["phase"] == "train" else None

    # --- computing ---

    def forward(self, fed):
        return self._call(self._logits, fed)

    def train(self, fed):
        return self._call(self._step, fed)

    def _logits(self, batch):
        """(result, updates) as symbols."""
        return logits_of(self._workload, self._parameters, batch), []

    def _step(self, batch):
        loss = loss_of(self._workload, self._logits(batch)[0], batch)
        return loss, self._optimiser.updates(loss)

    def _call(self, graph, fed):
        if self.function is None:
            # Inputs of fixed shapes, as JAX must have them; the other backends make use of that, too.
            batch = {name: pt.tensor(name, dtype=array.dtype, shape=array.shape) for name, array in fed.items()}
            result, updates = graph(batch)
            # The logits need no targets.
            self.function = pytensor.function(
                list(batch.values()), result, updates=updates, mode=self._mode, on_unused_input="ignore"
            )
        return self.function(**fed)

    # --- reading back ---

    def logits(self, handle):
        return steps_first(np.asarray(handle))

    def gradients(self, fed):
        """Read from the training step itself: from nothing, Adam's first moment becomes (1 - β1) × gradient."""
        before = [host(shared) for shared in self.state()]
        for shared in self._optimiser.state():
            shared.set_value(np.zeros_like(host(shared)))
        self.sync(self.train(fed))
        gradients = {name: host(first) / (1 - BETA_1) for name, first in self._optimiser.first.items()}
        for shared, value in zip(self.state(), before):
            shared.set_value(value)
        return gradients

    def parameters(self):
        return {name: host(shared) for name, shared in self._parameters.items()}

    def state(self):
        """Every shared variable there is."""
        return list(self._parameters.values()) + (self._optimiser.state() if self._optimiser else [])

    def parameter_count(self):
        return sum(host(shared).size for shared in self._parameters.values())
