"""The comparison: relative L2 errors of everything a worker computed, against the reference."""

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from rnnbench.domain.result import Figure
from rnnbench.domain.system import Precision
from rnnbench.domain.workload import Phase, Workload
from rnnbench.reference.inputs import Batch
from rnnbench.reference.network import logits
from rnnbench.reference.training import train

Arrays = Mapping[str, NDArray[np.floating]]

TOLERANCES: dict[Precision, float] = {"fp32": 1e-4, "tf32": 5e-3, "bf16": 5e-2}

#: How far the length of an update may be off. Adam's steps have nearly the same length at any precision,
#: and parameters barely move in three of them: at bf16's tolerance a skipped update would pass unseen.
MOVEMENT_TOLERANCE = 0.25


def compare(
    workload: Workload,
    phase: Phase,
    precision: Precision,
    biases: int,
    parameters: Arrays,
    batches: list[Batch],
    computed: Arrays,
) -> list[Figure]:
    """One figure per quantity of a phase. What the worker did not deliver counts as not finite."""
    if phase == "forward":
        return list(_forward_figures(workload, TOLERANCES[precision], parameters, batches, computed))
    return list(_train_figures(workload, TOLERANCES[precision], biases, parameters, batches, computed))


def _forward_figures(
    workload: Workload, tolerance: float, parameters: Arrays, batches: list[Batch], computed: Arrays
) -> Iterator[Figure]:
    for index in (0, 1):
        batch = batches[index]
        expected = _within_lengths(workload, batch, logits(workload, parameters, batch))
        found = computed.get(f"logits/{index}")
        if found is not None:
            found = _within_lengths(workload, batch, found)
        yield Figure(f"logits of batch {index}", relative_error(found, expected), tolerance)


def _train_figures(
    workload: Workload, tolerance: float, biases: int, parameters: Arrays, batches: list[Batch], computed: Arrays
) -> Iterator[Figure]:
    reference = train(workload, parameters, batches, biases=biases)
    for index, loss in enumerate(reference.losses):
        error = relative_error(computed.get(f"loss/{index}"), np.asarray(loss))
        yield Figure(f"loss of batch {index}", error, tolerance)
    # A gradient that is truly zero (the way back of a last-step head) is measured beside the largest.
    floor = 1e-6 * max(float(np.linalg.norm(value)) for value in reference.gradients.values())
    for name, expected in reference.gradients.items():
        error = relative_error(computed.get(f"gradient/{name}"), expected, floor)
        yield Figure(f"gradient of {name}", error, tolerance)
    for name, expected in reference.parameters.items():
        found = computed.get(f"parameter/{name}")
        yield Figure(f"{name} after {len(batches)} updates", relative_error(found, expected), tolerance)
        moved = _movement(found, expected, parameters[name])
        yield Figure(f"movement of {name}", moved, MOVEMENT_TOLERANCE)


def relative_error(
    found: NDArray[np.floating] | None, expected: NDArray[np.floating], floor: float = 0.0
) -> float | None:
    """‖found − expected‖ / ‖expected‖; None when something is missing, misshapen or not finite."""
    if found is None or found.shape != expected.shape or not np.all(np.isfinite(found)):
        return None
    distance = float(np.linalg.norm(np.asarray(found, np.float64) - expected))
    size = max(float(np.linalg.norm(expected)), floor)
    if distance == 0.0:
        return 0.0
    return distance / size if size > 0 else math.inf


def _movement(
    found: NDArray[np.floating] | None, expected: NDArray[np.floating], start: NDArray[np.floating]
) -> float | None:
    if found is None or found.shape != expected.shape or not np.all(np.isfinite(found)):
        return None
    before = np.asarray(start, np.float64)
    should = float(np.linalg.norm(expected - before))
    did = float(np.linalg.norm(np.asarray(found, np.float64) - before))
    if should == 0.0:
        return 0.0 if did == 0.0 else math.inf
    return abs(did / should - 1)


def _within_lengths(workload: Workload, batch: Batch, values: NDArray[np.floating]) -> NDArray[np.floating]:
    """What a framework leaves beyond a sequence's end is its own business: set to zero on both sides."""
    if not workload.variable_length or values.ndim != 3:
        return values
    inside = np.arange(workload.steps)[None, :] < batch["lengths"][:, None]
    if values.shape[:2] != inside.shape:
        return values
    return np.where(inside[:, :, None], values, 0.0)
