"""Adam as updates of shared variables: what a compiled function replaces after each call."""

import numpy as np
import pytensor
import pytensor.tensor as pt

from rnnbench_worker.training import BETA_1, BETA_2, EPSILON, LEARNING_RATE


class Adam(object):
    """The moments of every parameter, and the number of steps taken."""

    def __init__(self, parameters):
        self._parameters = parameters
        self._count = pytensor.shared(np.float32(0), name="count")
        self.first = zeros_beside(parameters)
        self._second = zeros_beside(parameters)

    def updates(self, loss):
        """(what is replaced, by what) for one step down the gradient of this loss."""
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
        """Every shared variable that a step replaces besides the parameters."""
        return [self._count] + list(self.first.values()) + list(self._second.values())


def zeros_beside(parameters):
    return {
        name: pytensor.shared(np.zeros_like(value.get_value()), shape=value.type.shape)
        for name, value in parameters.items()
    }
