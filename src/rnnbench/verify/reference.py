"""What is right: by NumPy in float64 or, for a user's own class, by the class itself, eagerly, in float64.

A class of PyTorch cannot be run here. It says what is right in a worker, on the CPU, as the plain loop that its author
would write.
"""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from rnnbench.domain.case import Method
from rnnbench.domain.workload import Phase, Workload
from rnnbench.errors import UserError
from rnnbench.launch.arrays import read_arrays
from rnnbench.launch.events import Arrays
from rnnbench.launch.job import ResolvedCase, make_job
from rnnbench.launch.worker import run_worker
from rnnbench.reference import network, training
from rnnbench.reference.inputs import Batch, FewSequences, Floats, Parameters, write_inputs
from rnnbench.reference.training import Training
from rnnbench.scratch import scratch_folder


class Reference(Protocol):
    """Computes a workload in float64."""

    def logits(self, workload: Workload, parameters: Parameters, batches: Sequence[Batch]) -> list[Floats]: ...

    def train(
        self,
        workload: Workload,
        parameters: Parameters,
        batches: Sequence[Batch],
        biases: int = 1,
        uncorrected_epsilon: bool = False,
    ) -> Training: ...

    def loss_and_gradients(
        self, workload: Workload, parameters: Parameters, few: FewSequences
    ) -> tuple[float, dict[str, Floats]]:
        """Of the batch that repeats a few sequences."""


class NumpyReference:
    """The network that is written out in `rnnbench.reference`."""

    def logits(self, workload: Workload, parameters: Parameters, batches: Sequence[Batch]) -> list[Floats]:
        return [network.logits(workload, parameters, batch) for batch in batches]

    def train(
        self,
        workload: Workload,
        parameters: Parameters,
        batches: Sequence[Batch],
        biases: int = 1,
        uncorrected_epsilon: bool = False,
    ) -> Training:
        return training.train(workload, parameters, batches, biases, uncorrected_epsilon)

    def loss_and_gradients(
        self, workload: Workload, parameters: Parameters, few: FewSequences
    ) -> tuple[float, dict[str, Floats]]:
        return network.loss_and_gradients(workload, parameters, few.distinct, few.shares)


NUMPY: Reference = NumpyReference()


class UnknownReference(UserError):
    """The class itself cannot say what is right: it fails in float64."""


class ClassReference:
    """A user's class, run eagerly in float64 by a worker in the environment of the rows that it is compared with."""

    _answers: ClassVar[dict[tuple[str, Phase], dict[str, NDArray[Any]]]] = {}
    _alone = threading.Lock()  # several rows ask for the same, and those verified at once must not all compute it

    def __init__(self, resolved: ResolvedCase, method: Method, phases: Sequence[Phase] = ()) -> None:
        """`phases`: those that will be asked for with the same batches, which one worker then computes."""
        loop = next(one for one in resolved.manifest.system if (one.granularity, one.execution) == _LOOP)
        self._resolved = msgspec.structs.replace(resolved, system=loop)
        self._method = method
        self._phases = tuple(phases)

    def logits(self, workload: Workload, parameters: Parameters, batches: Sequence[Batch]) -> list[Floats]:
        found = self._answer(workload, "forward", parameters, batches)
        return [found[f"logits/{index}"] for index in range(len(batches))]

    def train(
        self,
        workload: Workload,
        parameters: Parameters,
        batches: Sequence[Batch],
        biases: int = 1,
        uncorrected_epsilon: bool = False,
    ) -> Training:
        """Rows of a class have its own biases and PyTorch's own Adam, so both options are those of the reference."""
        found = self._answer(workload, "train", parameters, batches)

        def named(prefix: str) -> dict[str, Floats]:
            return {name.removeprefix(prefix): array for name, array in found.items() if name.startswith(prefix)}

        losses = [float(found[f"loss/{index}"]) for index in range(len(batches))]
        return Training(losses, named("gradient/"), named("parameter/"))

    def loss_and_gradients(
        self, workload: Workload, parameters: Parameters, few: FewSequences
    ) -> tuple[float, dict[str, Floats]]:
        found = self.train(workload, parameters, [few.batch])
        return found.losses[0], found.gradients

    def _answer(
        self, workload: Workload, phase: Phase, parameters: Parameters, batches: Sequence[Batch]
    ) -> dict[str, NDArray[Any]]:
        key = _digest(workload, parameters, batches)
        with self._alone:
            if (key, phase) not in self._answers:
                found = self._ask(workload, self._phases or (phase,), parameters, batches)
                self._answers.update({(key, one): arrays for one, arrays in found.items()})
            return self._answers[key, phase]

    def _ask(
        self, workload: Workload, phases: tuple[Phase, ...], parameters: Parameters, batches: Sequence[Batch]
    ) -> dict[Phase, dict[str, NDArray[Any]]]:
        resolved = msgspec.structs.replace(self._resolved, workload=workload)
        method = msgspec.structs.replace(self._method, cpus=())
        with scratch_folder("exact") as folder:
            inputs = Path(folder) / "inputs.npz"
            write_inputs(inputs, parameters, batches)
            job = make_job("verify", resolved, method, str(inputs), phases=phases, arrays=folder)
            job |= {"precision": "fp64", "device": "cpu"}
            result = run_worker(resolved.environment, job, resolved.manifest.variables, method.limit_seconds)
            delivered = {event.name: event.path for event in result.events if isinstance(event, Arrays)}
            if result.outcome != "ok":
                raise UnknownReference(f"the cell's own loop in float64 fails: {result.reason}")
            return {phase: read_arrays(delivered[phase], folder, expected_bytes=_MOST_BYTES) for phase in phases}


_LOOP = ("packed", "eager")
_MOST_BYTES = 4 << 30


def _digest(workload: Workload, parameters: Parameters, batches: Sequence[Batch]) -> str:
    digest = hashlib.sha256(msgspec.json.encode(workload))
    named: list[Mapping[str, NDArray[Any]]] = [parameters, *batches]
    for arrays in named:
        for name, array in arrays.items():
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def reference_for(resolved: ResolvedCase, method: Method, phases: Sequence[Phase] = ()) -> Reference:
    """What says what is right for a case. `phases`: see ClassReference."""
    return NUMPY if resolved.workload.own_class is None else ClassReference(resolved, method, phases)
