"""Compare everything a worker computed with the reference, by relative L2 errors."""

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from rnnbench.domain.result import Figure
from rnnbench.domain.system import Precision, System
from rnnbench.domain.workload import Phase, Workload
from rnnbench.reference.inputs import Batch
from rnnbench.verify.reference import NUMPY, Reference

Arrays = Mapping[str, NDArray[np.floating]]

TOLERANCES: dict[Precision, float] = {"fp32": 1e-4, "tf32": 5e-3, "bf16": 5e-2}

#: Of the parameters after three updates. In fp32 no honest system was above 3.2e-6, and a learning rate that is off by
#: half a per cent is at 8e-5; in lower precisions the updates themselves tell more.
PARAMETER_TOLERANCES: dict[Precision, float] = {**TOLERANCES, "fp32": 1e-5}

#: How far an update may be off as a vector: 1 if it is left out, 2 if it goes the other way. Three updates barely
#: change the parameters, so by the parameters alone a wrong update would go unnoticed.
UPDATE_TOLERANCES: dict[Precision, float] = {"fp32": 0.005, "tf32": 0.1, "bf16": 0.6}


def compare(
    workload: Workload,
    phase: Phase,
    precision: Precision,
    system: System,
    parameters: Arrays,
    batches: list[Batch],
    computed: Arrays,
    reference: Reference = NUMPY,
) -> list[Figure]:
    """One figure per quantity of a phase. A quantity that the worker did not deliver has no error, and fails."""
    if phase == "forward":
        return list(_forward_figures(workload, TOLERANCES[precision], parameters, batches, computed, reference))
    return list(_train_figures(workload, precision, system, parameters, batches, computed, reference))


def _forward_figures(
    workload: Workload,
    tolerance: float,
    parameters: Arrays,
    batches: list[Batch],
    computed: Arrays,
    reference: Reference,
) -> Iterator[Figure]:
    for index, exact in enumerate(reference.logits(workload, parameters, batches)[:2]):
        batch = batches[index]
        expected = within_lengths(workload, batch, exact)
        found = computed.get(f"logits/{index}")
        if found is not None:
            found = within_lengths(workload, batch, found)
        yield Figure(f"logits of batch {index}", relative_error(found, expected), tolerance)


def _train_figures(
    workload: Workload,
    precision: Precision,
    system: System,
    parameters: Arrays,
    batches: list[Batch],
    computed: Arrays,
    reference: Reference,
) -> Iterator[Figure]:
    tolerance = TOLERANCES[precision]
    exact = reference.train(workload, parameters, batches, system.biases, system.uncorrected_epsilon)
    for index, loss in enumerate(exact.losses):
        error = relative_error(computed.get(f"loss/{index}"), np.asarray(loss))
        yield Figure(f"loss of batch {index}", error, tolerance)
    # Some gradients are exactly zero (recurrent weights of a backward direction whose head reads the last step only).
    # Their errors are divided by 1e-6 of the largest gradient's norm instead.
    least_size = 1e-6 * max(float(np.linalg.norm(value)) for value in exact.gradients.values())
    for name, expected in exact.gradients.items():
        error = relative_error(computed.get(f"gradient/{name}"), expected, least_size)
        yield Figure(f"gradient of {name}", error, tolerance)
    for name, expected in exact.parameters.items():
        found = computed.get(f"parameter/{name}")
        error = relative_error(found, expected)
        yield Figure(f"{name} after {len(batches)} updates", error, PARAMETER_TOLERANCES[precision])
        before = parameters[name].astype(np.float64)
        yield Figure(f"updates of {name}", move_error(before, found, expected - before), UPDATE_TOLERANCES[precision])


def relative_error(
    found: NDArray[np.floating] | None, expected: NDArray[np.floating], least_size: float = 0.0, order: int = 2
) -> float | None:
    """‖found − expected‖ / max(‖expected‖, least_size); None when `found` is missing, misshapen or not finite.

    `order` 2: by the squares of all elements; 1: by their absolute values.
    """
    if found is None or found.shape != expected.shape or not np.all(np.isfinite(found)):
        return None
    distance = float(np.linalg.norm((np.asarray(found, np.float64) - expected).ravel(), order))
    size = max(float(np.linalg.norm(expected.ravel(), order)), least_size)
    if distance == 0.0:
        return 0.0
    return distance / size if size > 0 else math.inf


def move_error(
    start: NDArray[np.floating], found: NDArray[np.floating] | None, moved: NDArray[np.floating], order: int = 2
) -> float | None:
    """The relative error of a move from `start` to `found`, as a vector."""
    if found is None or found.shape != moved.shape:
        return None
    found = found.astype(np.float64) - start.astype(np.float64)
    return relative_error(found, moved.astype(np.float64), order=order)


def within_lengths(workload: Workload, batch: Batch, values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Values past a sequence's end are undefined: set them to zero before they are compared."""
    if not workload.variable_length or values.ndim != 3:
        return values
    inside = np.arange(workload.steps)[None, :] < batch["lengths"][:, None]
    if values.shape[:2] != inside.shape:
        return values
    return np.where(inside[:, :, None], values, 0.0)
