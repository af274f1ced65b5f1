"""A PyTensor network as a program: shared variables, and a function of them compiled at its first call."""

import jax
import numpy as np
import pytensor
import pytensor.tensor as pt

from rnnbench_worker.canonical import batch_first
from rnnbench_worker.program import BETA_1, BETA_2, EPSILON, LEARNING_RATE
from rnnbench_worker.shared.theano import FunctionProgram, host_copy
from rnnbench_worker.systems.jax.settings import device_name, peak_bytes

from .network import logits_of, loss_of


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
            # Inputs of fixed shapes, because JAX needs them; the other backends profit from them, too.
            batch = {name: pt.tensor(name, dtype=array.dtype, shape=array.shape) for name, array in fed.items()}
            result, updates = graph(batch)
            # The logits need no targets.
            self.function = pytensor.function(
                list(batch.values()), result, updates=updates, mode=self._mode, on_unused_input="ignore"
            )
        return self.function(**fed)

    # --- reading back ---

    def logits(self, handle):
        return batch_first(np.asarray(handle))

    def gradients(self, fed):
        """Read from the training step itself: Adam's first moment, starting from zero, becomes (1 - β1) × gradient."""
        before = [host_copy(shared) for shared in self.state()]
        for shared in self._optimiser.state():
            shared.set_value(np.zeros_like(host_copy(shared)))
        self.sync(self.train(fed))
        gradients = {name: host_copy(first) / (1 - BETA_1) for name, first in self._optimiser.first.items()}
        for shared, value in zip(self.state(), before):
            shared.set_value(value)
        return gradients

    def parameters(self):
        return {name: host_copy(shared) for name, shared in self._parameters.items()}

    def state(self):
        """All shared variables."""
        return list(self._parameters.values()) + (self._optimiser.state() if self._optimiser else [])

    def parameter_count(self):
        return sum(host_copy(shared).size for shared in self._parameters.values())


class JaxBackedProgram(PyTensorProgram):
    """Compiled through JAX: calls return before they are finished, and updated values stay on the device."""

    def __init__(self, job, mode, parameters):
        super(JaxBackedProgram, self).__init__(job, mode, parameters)
        for shared in self.state():
            # As an update leaves it: a host array would be copied to the device again at every forward call.
            shared.container.storage[0] = jax.device_put(shared.get_value())

    @property
    def device(self):
        return device_name(self._jax_device)

    @property
    def _jax_device(self):
        (device,) = self.state()[0].get_value(borrow=True).devices()
        return device

    def sync(self, handle):
        jax.block_until_ready([handle] + [shared.get_value(borrow=True) for shared in self.state()])

    def peak_device_bytes(self):
        return peak_bytes(self._jax_device)


class Adam(object):
    """Adam as updates of shared variables: the moments of each parameter and the number of steps."""

    def __init__(self, parameters):
        self._parameters = parameters
        self._count = pytensor.shared(np.float32(0), name="count")
        self.first = zeros_like_each(parameters)
        self._second = zeros_like_each(parameters)

    def updates(self, loss):
        """(variable, new value) of everything that one step down the gradient of this loss changes."""
        count = self._count + 1
        updates = [(self._count, count)]
        names = list(self._parameters)
        gradients = pytensor.grad(loss, [self._parameters[name] for name in names])
        for name, gradient in zip(names, gradients):
            first = BETA_1 * self.first[name] + (1 - BETA_1) * gradient
            second = BETA_2 * self._second[name] + (1 - BETA_2) * pt.sqr(gradient)
            root = pt.sqrt(second / (1 - BETA_2**count))
            change = LEARNING_RATE * (first / (1 - BETA_1**count)) / (root + EPSILON)
            parameter = self._parameters[name]
            updates += [(self.first[name], first), (self._second[name], second), (parameter, parameter - change)]
        return updates

    def state(self):
        """The shared variables that a step changes besides the parameters."""
        return [self._count] + list(self.first.values()) + list(self._second.values())


def zeros_like_each(parameters):
    return {
        name: pytensor.shared(np.zeros_like(value.get_value()), shape=value.type.shape)
        for name, value in parameters.items()
    }
