"""Systems whose updates are nearly right: Adam with another constant, or not at every step."""

import numpy as np

from .honest import Honest


class EverySecondUpdate(Honest):
    count = 0

    def update(self, gradients):
        self.count += 1
        if self.count < 6 or self.count % 2:
            super().update(gradients)


class WeightDecay(Honest):
    def update(self, gradients):
        super().update(gradients)
        for value in self.adam.parameters.values():
            value *= 1 - 1e-5


class OtherRate(Honest):
    def update(self, gradients):
        before = {name: value.copy() for name, value in self.adam.parameters.items()}
        super().update(gradients)
        for name, value in self.adam.parameters.items():
            value += 0.005 * (value - before[name])


class OtherConstant(Honest):
    """Adam by hand, with one constant changed."""

    beta_2, epsilon = 0.999, 1e-8

    def __init__(self, job, parameters):
        super().__init__(job, parameters)
        self.steps = 0
        self.means = dict.fromkeys(parameters, 0.0)
        self.squares = dict.fromkeys(parameters, 0.0)

    def update(self, gradients):
        self.steps += 1
        for name, gradient in gradients.items():
            self.means[name] = 0.9 * self.means[name] + 0.1 * gradient
            self.squares[name] = self.beta_2 * self.squares[name] + (1 - self.beta_2) * gradient**2
            mean = self.means[name] / (1 - 0.9**self.steps)
            square = self.squares[name] / (1 - self.beta_2**self.steps)
            self.adam.parameters[name] -= 1e-3 * mean / (np.sqrt(square) + self.epsilon)


class OtherBeta(OtherConstant):
    beta_2 = 0.99


class OtherEpsilon(OtherConstant):
    epsilon = 1e-7


class ReversedUpdate(Honest):
    """Every update has the right length and the wrong sign."""

    def update(self, gradients):
        super().update({name: -value for name, value in gradients.items()})


SYSTEMS = {
    "every-second-update": EverySecondUpdate,
    "weight-decay": WeightDecay,
    "other-rate": OtherRate,
    "other-beta": OtherBeta,
    "other-epsilon": OtherEpsilon,
    "reversed-update": ReversedUpdate,
}
