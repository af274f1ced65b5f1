"""A few training steps, as every system must make them: what `verify` compares with."""

from collections.abc import Sequence
from typing import NamedTuple

from rnnbench.domain.workload import Workload
from rnnbench.reference.adam import Adam
from rnnbench.reference.arrays import Floats, Parameters
from rnnbench.reference.inputs import Batch
from rnnbench.reference.network import loss_and_gradients


class Training(NamedTuple):
    losses: list[float]  # of each batch, before its step
    gradients: dict[str, Floats]  # of the first batch, at the initial parameters
    parameters: dict[str, Floats]  # after all steps


def train(workload: Workload, parameters: Parameters, batches: Sequence[Batch], biases: int = 1) -> Training:
    """One Adam step per batch.

    Some frameworks hold `biases=2` bias vectors per recurrent layer and only ever add them. Both get
    the same gradient and Adam moves both alike, so their sum, the bias seen here, moves twice as far.
    """
    adam = Adam(parameters, {name: float(biases) for name in parameters if _is_recurrent_bias(name)})
    losses: list[float] = []
    first: dict[str, Floats] = {}
    for batch in batches:
        value, gradients = loss_and_gradients(workload, adam.parameters, batch)
        losses.append(value)
        first = first or gradients
        adam.step(gradients)
    return Training(losses, first, adam.parameters)


def _is_recurrent_bias(name: str) -> bool:
    return name.startswith("layer") and name.endswith(".b")
