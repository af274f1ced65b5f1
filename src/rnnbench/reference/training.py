"""Training with Adam, as the frameworks define it: epsilon is added outside the bias-corrected square root."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rnnbench.domain.workload import Workload
from rnnbench.reference.inputs import Batch, Floats, Parameters
from rnnbench.reference.network import loss_and_gradients

LEARNING_RATE = 1e-3
BETA1 = 0.9
BETA2 = 0.999
EPSILON = 1e-8


class Adam:
    """Holds the parameters in float64, and updates them once for each set of gradients.

    `multipliers` holds factors on the learning rate of some parameters. With `uncorrected_epsilon`, epsilon is added
    before the bias correction, scaled so that it is the published one at the first step.
    """

    def __init__(
        self,
        parameters: Parameters,
        multipliers: Mapping[str, float] | None = None,
        uncorrected_epsilon: bool = False,
    ) -> None:
        self.parameters: dict[str, Floats] = {
            name: np.array(array, dtype=np.float64) for name, array in parameters.items()
        }
        self._multipliers = multipliers or {}
        self._uncorrected_epsilon = uncorrected_epsilon
        self._means = {name: np.zeros_like(array) for name, array in self.parameters.items()}
        self._squares = {name: np.zeros_like(array) for name, array in self.parameters.items()}
        self._steps = 0

    def step(self, gradients: Mapping[str, Floats]) -> None:
        self._steps += 1
        epsilon = EPSILON
        if self._uncorrected_epsilon:
            epsilon *= float(np.sqrt((1 - BETA2) / (1 - BETA2**self._steps)))
        for name, gradient in gradients.items():
            mean, square = self._means[name], self._squares[name]
            mean += (1 - BETA1) * (gradient - mean)
            square += (1 - BETA2) * (gradient**2 - square)
            # Both averages start at zero: the division corrects for the weight that this zero still has.
            mean_hat = mean / (1 - BETA1**self._steps)
            square_hat = square / (1 - BETA2**self._steps)
            rate = LEARNING_RATE * self._multipliers.get(name, 1.0)
            self.parameters[name] -= rate * mean_hat / (np.sqrt(square_hat) + epsilon)


class Training(NamedTuple):
    losses: list[float]  # of each batch, before its step
    gradients: dict[str, Floats]  # of the first batch, at the initial parameters
    parameters: dict[str, Floats]  # after all steps


def train(
    workload: Workload,
    parameters: Parameters,
    batches: Sequence[Batch],
    biases: int = 1,
    uncorrected_epsilon: bool = False,
) -> Training:
    """One Adam step per batch; `uncorrected_epsilon`: see Adam.

    Some frameworks have `biases=2` bias vectors per recurrent layer and use only their sum. Both get the
    same gradient and the same update, so their sum, which is the bias here, moves twice as far.
    """
    multipliers = {name: float(biases) for name in parameters if is_recurrent_bias(name)}
    adam = Adam(parameters, multipliers, uncorrected_epsilon)
    losses: list[float] = []
    first: dict[str, Floats] = {}
    for batch in batches:
        value, gradients = loss_and_gradients(workload, adam.parameters, batch)
        losses.append(value)
        first = first or gradients
        adam.step(gradients)
    return Training(losses, first, adam.parameters)


def is_recurrent_bias(name: str) -> bool:
    return name.startswith("layer") and name.endswith(".b")
