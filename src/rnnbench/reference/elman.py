"""Seed 003's one recurrent step: two matrix products, an addition, tanh, a sum; and the way back.

`h2h = W_h · prev_hᵀ`, `i2h = W_x · xᵀ`, `next_h = tanh(h2h + i2h)`, `loss = Σ next_h`. A batch stands in columns.
"""

import numpy as np

from rnnbench.reference.arrays import Floats
from rnnbench.reference.inputs import Batch


def step_forward(parameters: dict[str, Floats], batch: Batch) -> Floats:
    """The state after the step, `[hidden, batch]`."""
    state, inputs = (np.asarray(batch[name], np.float64) for name in ("state", "inputs"))
    next_h: Floats = np.tanh(parameters["W_h"] @ state.T + parameters["W_x"] @ inputs.T)
    return next_h


def step_loss_and_gradients(parameters: dict[str, Floats], batch: Batch) -> tuple[float, dict[str, Floats]]:
    next_h = step_forward(parameters, batch)
    d_sum = 1 - next_h**2  # of the loss with respect to h2h + i2h
    return float(next_h.sum()), {"W_h": d_sum @ batch["state"], "W_x": d_sum @ batch["inputs"]}
