"""A Lasagne network as a program: shared variables, and a function of them compiled at its first call."""

import numpy as np
import theano

from rnnbench_worker.canonical import join_gates
from rnnbench_worker.systems.theano.program import FunctionProgram, host
from rnnbench_worker.training import BETA_1, BETA_2, EPSILON, LEARNING_RATE

from .imported import lasagne
from .network import Network


class LasagneProgram(FunctionProgram):
    """Its function takes batches of any size, and of any length where a mask has not written one in."""

    def __init__(self, job, parameters):
        super(LasagneProgram, self).__init__(job)
        self._network = Network(self._workload, parameters)
        self._shared = [shared for parts in self._network.shared.values() for shared in parts]

    # --- computing ---

    def forward(self, fed):
        if self.function is None:
            self.function = self._compiled(self._network.logits(), {})
        return self._call(fed), fed["inputs"].shape[:2]

    def train(self, fed):
        self._make_step()
        return self._call(fed)

    def _make_step(self):
        if self.function is None:
            loss = self._network.loss()
            # Lasagne adds it to the root before that is corrected: the published one at the first step, and less later.
            epsilon = EPSILON * (1 - BETA_2) ** 0.5
            updates = lasagne.updates.adam(loss, self._shared, LEARNING_RATE, BETA_1, BETA_2, epsilon)
            self._state = list(updates)  # of each parameter both moments and itself; at the end the count of steps
            self._moments = self._state[:-1:3]
            self.function = self._compiled(loss, updates)

    def _compiled(self, result, updates):
        return theano.function(list(self._network.batch.values()), result, updates=updates)

    def _call(self, fed):
        return self.function(*[fed[name] for name in self._network.batch])

    # --- reading back ---

    def logits(self, handle):
        logits, batch_and_steps = handle
        if self._workload["head_on"] == "last-step":
            return np.asarray(logits)
        return np.reshape(logits, batch_and_steps + (self._workload["classes"],))

    def gradients(self, fed):
        """Read from the training step itself: from nothing, Adam's first moment becomes (1 - β1) × gradient."""
        self._make_step()
        before = [host(shared) for shared in self._state]
        for moment in self._moments:
            moment.set_value(np.zeros_like(host(moment)))
        self.train(fed)
        gradients = self._canonical([host(moment) / (1 - BETA_1) for moment in self._moments])
        for shared, value in zip(self._state, before):
            shared.set_value(value)
        return gradients

    def parameters(self):
        return self._canonical([host(shared) for shared in self._shared])

    def _canonical(self, values):
        """Values in the order of the shared variables, put together where they are one per gate."""
        values = iter(values)
        return {name: join_gates([next(values) for _ in parts]) for name, parts in self._network.shared.items()}

    def parameter_count(self):
        return sum(host(shared).size for shared in self._shared)
