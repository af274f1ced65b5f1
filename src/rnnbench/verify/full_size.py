"""The timed program itself, compared with the reference at full size: its first batches, and batches never seen before.

In training, gradients are proved by what they do: by the first updates, and by how an unseen batch changes an update.
A separate computation of gradients would be another program than the timed one, and would be compiled once more.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnbench.domain.case import Case
from rnnbench.domain.result import Figure
from rnnbench.domain.run import Run
from rnnbench.domain.system import Precision
from rnnbench.domain.workload import parameter_shapes
from rnnbench.launch.arrays import read_arrays
from rnnbench.launch.job import resolve_case
from rnnbench.reference.inputs import Batch, Floats, few_sequences, make_parameters
from rnnbench.reference.training import BETA1, BETA2, EPSILON, LEARNING_RATE, is_recurrent_bias
from rnnbench.verify.compare import TOLERANCES, UPDATE_TOLERANCES, Arrays, move_error, relative_error, within_lengths
from rnnbench.verify.expected import Expected, chosen_sequences, expect, variant
from rnnbench.verify.reference import NUMPY, Reference, reference_for

#: How much of an unseen batch's effect on an update may point elsewhere than its gradient: 0 nowhere, 1 at random,
#: 2 the opposite way.
DIRECTION_TOLERANCES: dict[Precision, float] = {"fp32": 0.1, "tf32": 0.1, "bf16": 0.5}
ROUNDING = 0.01  # of a gradient's share in an update: updates are differences of parameters in fp32
#: No element moves further in one update, relative to the learning rate: Adam's own bound.
LONGEST_UPDATE = (1 - BETA1) / math.sqrt(1 - BETA2)
SHORTEST_UPDATE = 1e-3


class Checked(NamedTuple):
    figures: tuple[Figure, ...]
    text: str  # what was checked, in words


class FullSizeCheck:
    """What a launch is asked to deliver, and the judgement on it."""

    def __init__(self, expected: Expected, precision: Precision, start: Arrays, reference: Reference = NUMPY) -> None:
        """`start`: the parameters that every system begins with."""
        self._reference = reference
        self._expected = expected
        self._start = start
        self._precision: Precision = precision
        self._workload = expected.workload
        self._chosen = chosen_sequences(expected.workload)
        self.request: dict[str, object] = {"updates": expected.updates, "sequences": self._chosen}

    @property
    def _most_bytes(self) -> int:
        """The most that one file of a worker may have: three copies of the parameters, or logits, in float64."""
        parameters = sum(math.prod(shape) for shape in parameter_shapes(self._workload).values())
        logits = len(self._chosen) * self._workload.steps * self._workload.classes
        return 8 * (3 * parameters + 2 * logits)

    def judge(self, delivered: Mapping[str, str], folder: Path) -> Checked:
        """Compare the arrays of the first batches and of the unseen ones."""
        first, unseen = (
            read_arrays(delivered[name], folder, expected_bytes=self._most_bytes) if name in delivered else {}
            for name in ("first", "unseen")
        )
        if self._expected.phase == "forward":
            figures = [*self._forward_figures(first, unseen)]
            return Checked(tuple(figures), "logits of the first batch and of two unseen batches")
        figures = [*self._first_updates(first), *self._unseen_updates(unseen)]
        return Checked(tuple(figures), f"{self._first_words()}, and two updates by unseen batches")

    def _first_words(self) -> str:
        updates = self._expected.updates
        if updates:
            return f"the first {updates} updates" if updates > 1 else "the first update (more would take too long)"
        if self._expected.losses:
            return "the first loss (an update would take too long)"
        return "nothing of the first batches (they would take too long)"

    # --- forward ---

    def _forward_figures(self, first: Arrays, unseen: Arrays) -> Iterator[Figure]:
        expected = self._expected
        pairs = [("the first batch", first, 0, expected.first, expected.first_logits)]
        for index, (batch, values) in enumerate(zip(expected.unseen, expected.unseen_logits, strict=True)):
            few = few_sequences(batch)
            sequences = {name: array[self._chosen] for name, array in few.batch.items()}
            pairs.append((f"unseen batch {index}", unseen, index, sequences, values))
        for which, arrays, index, batch, values in pairs:
            error = self._logits_error(arrays, index, batch, values)
            yield Figure(f"logits of {which}", error, TOLERANCES[self._precision])

    def _logits_error(self, arrays: Arrays, index: int, batch: Batch, expected: NDArray[np.floating]) -> float | None:
        found, shape = arrays.get(f"logits/{index}"), arrays.get(f"shape/{index}")
        if found is None or shape is None or shape.tolist() != [self._workload.batch, *expected.shape[1:]]:
            return None
        found, expected = (within_lengths(self._workload, batch, values) for values in (found, expected))
        return relative_error(found, expected)

    # --- training ---

    @property
    def _order(self) -> int:
        """How first updates are compared: by squares, or for CTC in fp32 by absolute values.

        Adam's first update has the length of the learning rate in every element, however small its gradient is. CTC in
        fp32 over 1,000 steps is off by up to 2e-3 (docs/findings.md), so a dozen of 100,000 elements go the other way.
        By squares that is 0.02, by absolute values 2e-4; a wrong learning rate shows in both as it is.
        """
        return 1 if self._workload.loss == "ctc" and self._precision == "fp32" else 2

    def _first_updates(self, found: Arrays) -> Iterator[Figure]:
        expected = self._expected
        tolerance = TOLERANCES[self._precision]
        errors = {
            f"loss of batch {index}": relative_error(found.get(f"loss/{index}"), np.asarray(loss))
            for index, loss in enumerate(expected.losses)
        }
        if errors:
            yield _worst(errors, tolerance)
        if expected.moved:
            which = f"first {expected.updates} updates" if expected.updates > 1 else "first update"
            moves = {
                f"{which} of {name}": move_error(self._start[name], found.get(f"after/{name}"), moved, self._order)
                for name, moved in expected.moved.items()
            }
            yield _worst(moves, UPDATE_TOLERANCES[self._precision])

    def _unseen_updates(self, found: Arrays) -> Iterator[Figure]:
        """The second unseen batch is evaluated at the parameters that the first one left."""
        tolerance = TOLERANCES[self._precision]
        before, between, after = (self._parameters(found, prefix) for prefix in ("before/0", "before/1", "after"))
        if before is None or between is None or after is None:
            yield Figure("parameters around an unseen batch", None, tolerance)
            return
        few = few_sequences(self._expected.unseen[1])
        loss, gradients = self._reference.loss_and_gradients(self._workload, between, few)
        yield Figure("loss of an unseen batch", relative_error(found.get("loss/1"), np.asarray(loss)), tolerance)
        directions: dict[str, float | None] = {}
        lengths: dict[str, float | None] = {}
        for name, gradient in gradients.items():
            if not np.any(gradient):
                continue
            first, second = between[name] - before[name], after[name] - between[name]
            count = int(found["batches"]) if "batches" in found else 0
            times = self._expected.biases if is_recurrent_bias(name) else 1
            error = direction_error(first, second, gradient, count, LEARNING_RATE * times)
            directions[f"direction of an unseen update of {name}"] = error
            most = LONGEST_UPDATE * times
            for which, update in (("first", first), ("second", second)):
                lengths[f"length of the {which} unseen update of {name}"] = length_error(update, gradient, most)
        yield _worst(directions, DIRECTION_TOLERANCES[self._precision])
        yield _worst(lengths, 1.0)

    def _parameters(self, found: Arrays, prefix: str) -> dict[str, Floats] | None:
        """All parameters of a moment; None where one is missing, misshapen or not finite."""
        parameters = {}
        for name, shape in parameter_shapes(self._workload).items():
            array = found.get(f"{prefix}/{name}")
            if array is None or array.shape != shape or not np.all(np.isfinite(array)):
                return None
            parameters[name] = array.astype(np.float64)
        return parameters


def direction_error(first: Floats, second: Floats, gradient: Floats, count: int, rate: float) -> float:
    """How much of the change from one update to the next cannot come from this gradient: 0 nothing, 1 as much as by
    chance, 2 all.

    Adam's mean is 0.9 of the last one and 0.1 of the new gradient, so two updates u and u' that follow each other
    satisfy, in every element,

        A u' √(0.999 v + 0.001 g²) = B u √v - 0.1 rate g,

    where A, B and the factors of the roots are known from `count`, the updates before both. The average of the squares
    v is not known. An element is in order if there is any v ≥ 0 for which this holds.
    """
    bias_1, bias_2 = ([1 - beta ** (count + k) for k in (1, 2)] for beta in (BETA1, BETA2))
    a, b = bias_1[1] * second, BETA1 * bias_1[0] * first
    # The roots: of 0.999 v + 0.001 g² as `large`·√(v + own), and of v as `small`·√v.
    large, small = math.sqrt(BETA2 / bias_2[1]), math.sqrt(1 / bias_2[0])
    own = (1 - BETA2) / BETA2 * gradient**2
    constant = (1 - BETA1) * rate * gradient + EPSILON * (a - b)

    def difference(root_v: Floats) -> Floats:
        """Of both sides, for a value of √v."""
        found: Floats = a * large * np.sqrt(root_v**2 + own) - b * small * root_v + constant
        return found

    slope = a * large - b * small  # of the difference, for large v
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = b * small / (a * large)  # where it is below 1, the difference turns at √(own)·ratio/√(1 - ratio²)
        turning = np.where((ratio > 0) & (ratio < 1), np.sqrt(own) * ratio / np.sqrt(1 - ratio**2), 0.0)
    # Of what this batch moves for the first time, v is 0: then both sides are equal but for rounding.
    slack = ROUNDING * np.abs(constant)
    near = np.stack([difference(root_v) for root_v in (np.zeros_like(gradient), turning)])
    lowest, highest = (near - slack).min(axis=0), (near + slack).max(axis=0)
    is_possible = (np.minimum(lowest, slope) <= 0) & (np.maximum(highest, slope) >= 0)
    weights = np.abs(slope * gradient)
    total = float(np.sum(weights))
    return 2 * float(np.sum(weights[~is_possible])) / total if total else 0.0


def length_error(update: Floats, gradient: Floats, most: float) -> float | None:
    """The root mean square of the elements that a gradient moves, relative to the most that is possible.

    None for a parameter that hardly moved.
    """
    moved = update[gradient != 0]
    size = float(np.sqrt(np.mean(moved**2))) / LEARNING_RATE
    return size / most if size > SHORTEST_UPDATE else None


def _worst(errors: Mapping[str, float | None], tolerance: float) -> Figure:
    """One figure for many of one kind: that of the largest error. A launch is stored once for each of them."""
    figures = [Figure(quantity, error, tolerance) for quantity, error in errors.items()]
    return max(figures, key=lambda figure: figure.excess)


def full_size_checks(run: Run, cases: Iterable[Case], note: Callable[[str], None]) -> dict[str, FullSizeCheck]:
    """The check of each case, by its key; none if the run does not verify. The reference is computed or loaded now."""
    if not run.method.verify:
        return {}
    data = Path(run.data) if run.data else None
    expected: dict[tuple[object, ...], Expected] = {}
    starts: dict[str, Arrays] = {}  # millions of numbers, the same for all systems
    checks: dict[str, FullSizeCheck] = {}
    for case in cases:
        resolved = resolve_case(case, run.workloads, run.systems, run.environments)
        workload, system, reference = resolved.workload, resolved.system, reference_for(resolved, run.method)
        key = (case.workload, case.phase, *variant(system, case.phase).values())
        if key not in expected:
            expected[key] = expect(workload, case.phase, system, run.method.seed, data, note, reference)
        if case.workload not in starts:
            starts[case.workload] = make_parameters(workload, run.method.seed)
        checks[case.key] = FullSizeCheck(expected[key], case.precision, starts[case.workload], reference)
    return checks
