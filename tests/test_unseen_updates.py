"""Whether an update can come from a gradient, whatever Adam's averages are: after few updates and after many."""

import numpy as np
import pytest

from rnnbench.reference.training import BETA1, BETA2, EPSILON, LEARNING_RATE
from rnnbench.verify.full_size import DIRECTION_TOLERANCES, direction_error

COUNT = 20_000
TOLERANCE = DIRECTION_TOLERANCES["fp32"]


def updates_of(gradients):
    """What Adam adds to the parameters, for each of the gradients in turn."""
    mean, squares, found = 0.0, 0.0, []
    for step, gradient in enumerate(gradients, start=1):
        mean = BETA1 * mean + (1 - BETA1) * gradient
        squares = BETA2 * squares + (1 - BETA2) * gradient**2
        root = np.sqrt(squares / (1 - BETA2**step)) + EPSILON
        found.append(-LEARNING_RATE * mean / (1 - BETA1**step) / root)
    return found


class History:
    """Four batches in turn, then two that were not seen before; many elements are moved by none or by one of them."""

    def __init__(self, count):
        generator = np.random.default_rng(count)

        def gradient(size, share):
            return generator.standard_normal(COUNT) * generator.random(COUNT) * size * (generator.random(COUNT) < share)

        self.count = count
        self.repeated = [gradient(1e-4, 0.3) for _ in range(4)]
        self.earlier = [self.repeated[k % 4] for k in range(count)] + [gradient(1e-4, 0.5)]
        self.last = gradient(3e-4, 0.5)
        self.other = gradient(3e-4, 1.0) * (self.last != 0)
        self.start = (0.1 * generator.standard_normal(COUNT)).astype(np.float32)

    def error(self, used, gradient):
        """Where the last update was made with `used`, and the reference has this gradient. Parameters are fp32."""
        first, second = updates_of([*self.earlier, used])[-2:]
        between = (self.start + first).astype(np.float32)
        after = (between + second).astype(np.float32)
        moves = between.astype(np.float64) - self.start, after.astype(np.float64) - between
        return direction_error(*moves, gradient, self.count, LEARNING_RATE)


@pytest.mark.parametrize("count", [0, 1, 3, 8, 18, 100, 1000])
def test_an_honest_update_is_possible_after_any_number_of_others(count):
    history = History(count)
    assert history.error(history.last, history.last) < 1e-3
    assert history.error(history.last * 1.01, history.last) < TOLERANCE  # as far off as bf16


@pytest.mark.parametrize("count", [0, 3, 8, 1000])
def test_an_update_by_another_gradient_is_found(count):
    history = History(count)
    wrong = {
        "an old batch": history.repeated[0],
        "nothing": np.zeros(COUNT),
        "noise": history.other,
        "the opposite": -history.last,
        "half of the elements by noise": np.where(np.arange(COUNT) % 2, history.last, history.other),
    }
    for what, used in wrong.items():
        assert history.error(used, history.last) > 4 * TOLERANCE, what
