"""Adam, in the formulation the frameworks share: epsilon outside the bias-corrected square root."""

from collections.abc import Mapping

import numpy as np

from rnnbench.reference.arrays import Floats, Parameters

LEARNING_RATE = 1e-3
BETA1 = 0.9
BETA2 = 0.999
EPSILON = 1e-8


class Adam:
    """Holds the parameters, in float64, and moves them one step for each set of gradients.

    `multipliers` names the parameters whose steps are longer than the learning rate says.
    """

    def __init__(self, parameters: Parameters, multipliers: Mapping[str, float] | None = None) -> None:
        self.parameters: dict[str, Floats] = {
            name: np.array(array, dtype=np.float64) for name, array in parameters.items()
        }
        self._multipliers = multipliers or {}
        self._means = {name: np.zeros_like(array) for name, array in self.parameters.items()}
        self._squares = {name: np.zeros_like(array) for name, array in self.parameters.items()}
        self._steps = 0

    def step(self, gradients: Mapping[str, Floats]) -> None:
        self._steps += 1
        for name, gradient in gradients.items():
            mean, square = self._means[name], self._squares[name]
            mean += (1 - BETA1) * (gradient - mean)
            square += (1 - BETA2) * (gradient**2 - square)
            # Both averages started at zero: dividing makes up for the weight that zero still has.
            mean_hat = mean / (1 - BETA1**self._steps)
            square_hat = square / (1 - BETA2**self._steps)
            rate = LEARNING_RATE * self._multipliers.get(name, 1.0)
            self.parameters[name] -= rate * mean_hat / (np.sqrt(square_hat) + EPSILON)
