"""What a timed program must compute at full size, by the float64 reference. Computed once and kept in the cache.

Three updates of the largest workload take minutes, so the number of updates depends on the work in one: three, or one,
or only the first loss. It does not depend on the machine: a row says the same everywhere.
"""

import hashlib
import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rnnbench.domain.system import System
from rnnbench.domain.workload import Phase, Workload, flops
from rnnbench.files import cache_folder, cells_package, write_atomically
from rnnbench.launch.arrays import DamagedArrays, read_arrays
from rnnbench.launch.job import REPEATED_BATCHES, UNSEEN_BATCHES
from rnnbench.manifests import source_hash
from rnnbench.reference.inputs import Batch, few_sequences, make_batches, make_parameters
from rnnbench.reference.losses import equal_shares, evaluate_loss
from rnnbench.reference.network import logits, sequences_at_once
from rnnbench.verify.reference import NUMPY, Reference

UPDATES = 3
#: Operations of a training step up to which so many updates are computed. Two cores make 15 to 20 GFLOP per second:
#: three updates take up to half a minute, one takes up to two minutes.
THREE_UPDATES, ONE_UPDATE = 2e11, 2e12
WORTH_A_NOTE = 3e11
SEQUENCES = 8  # of a batch, whose logits are compared: all logits of a language model are 256 MB

Note = Callable[[str], None]


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """The reference's results for one workload, phase, number of biases and kind of Adam."""

    workload: Workload
    phase: Phase
    biases: int = 1
    uncorrected_epsilon: bool = False
    updates: int = 0  # of the first batches, in training
    losses: tuple[float, ...] = ()  # of the first batches; one without updates is of the first batch alone
    moved: dict[str, NDArray[np.float32]] = {}  # how far these updates move each parameter
    first_logits: NDArray[np.float32] = np.zeros(0, np.float32)  # forward: of chosen sequences of the first batch
    unseen_logits: tuple[NDArray[np.float32], ...] = ()  # forward: of the same sequences of the unseen batches
    first: Batch = {}  # the chosen sequences of the first batch
    unseen: tuple[Batch, ...] = ()  # the unseen batches as they were before most sequences were replaced


def chosen_sequences(workload: Workload) -> list[int]:
    """Spread over the batch, with its first and its last sequence."""
    return sorted({round(k) for k in np.linspace(0, workload.batch - 1, min(SEQUENCES, workload.batch))})


def variant(system: System, phase: Phase) -> dict[str, Any]:
    """What of a system changes the reference's results: nothing, for the forward pass."""
    if phase == "forward":
        return {}
    return {"biases": system.biases, "uncorrected_epsilon": system.uncorrected_epsilon}


def expect(
    workload: Workload,
    phase: Phase,
    system: System,
    seed: int,
    data: Path | None,
    note: Note,
    reference: Reference = NUMPY,
) -> Expected:
    """What a system with these biases and this Adam must compute. `note` is told what takes long."""
    batches = make_batches(workload, REPEATED_BATCHES + UNSEEN_BATCHES, seed, data)
    chosen = {name: values[chosen_sequences(workload)] for name, values in batches[0].items()}
    blank = Expected(
        workload=workload, phase=phase, first=chosen, unseen=tuple(batches[REPEATED_BATCHES:]), **variant(system, phase)
    )
    parameters = make_parameters(workload, seed)
    if workload.own_class is not None:  # it may import what no hash covers, so it is not kept
        return _make(blank, parameters, batches, note, reference)
    path = _cache_path(blank, seed, batches)
    kept = _load(path, blank)
    if kept is not None:
        return kept
    made = _make(blank, parameters, batches, note, reference)
    _store(path, made)
    return made


def _make(
    blank: Expected, parameters: dict[str, NDArray[np.float32]], batches: list[Batch], note: Note, reference: Reference
) -> Expected:
    if blank.phase == "forward":
        return _expect_forward(blank, parameters, reference)
    return _expect_training(blank, parameters, batches[:UPDATES], note, reference)


def _expect_forward(blank: Expected, parameters: dict[str, NDArray[np.float32]], reference: Reference) -> Expected:
    workload = blank.workload
    chosen = chosen_sequences(workload)
    few = [few_sequences(one) for one in blank.unseen]
    first, *others = reference.logits(workload, parameters, [blank.first, *(one.distinct for one in few)])
    unseen = [exact[one.chosen[chosen]].astype(np.float32) for one, exact in zip(few, others, strict=True)]
    return msgspec.structs.replace(blank, first_logits=first.astype(np.float32), unseen_logits=tuple(unseen))


def _expect_training(
    blank: Expected, parameters: dict[str, NDArray[np.float32]], batches: list[Batch], note: Note, reference: Reference
) -> Expected:
    workload = blank.workload
    work = flops(workload, "train")
    if work > ONE_UPDATE:
        if flops(workload, "forward") > ONE_UPDATE or workload.own_class is not None:
            return blank
        return msgspec.structs.replace(blank, losses=(_loss_in_parts(workload, parameters, batches[0]),))
    updates = UPDATES if work <= THREE_UPDATES else 1
    if updates * work > WORTH_A_NOTE:
        note(f"computing what {workload.name} must give at full size, which takes a minute or two, once")
    found = reference.train(workload, parameters, batches[:updates], blank.biases, blank.uncorrected_epsilon)
    return msgspec.structs.replace(
        blank,
        updates=len(found.losses),
        losses=tuple(found.losses),
        moved={name: (after - parameters[name]).astype(np.float32) for name, after in found.parameters.items()},
    )


def _loss_in_parts(workload: Workload, parameters: dict[str, NDArray[np.float32]], batch: Batch) -> float:
    shares, size, total = equal_shares(workload.batch), sequences_at_once(workload), 0.0
    for start in range(0, workload.batch, size):
        part = {name: values[start : start + size] for name, values in batch.items()}
        total += evaluate_loss(workload, logits(workload, parameters, part), part, shares[start : start + size])[0]
    return total


# --- the cache ----------------------------------------------------------------------------------------


def _cache_path(blank: Expected, seed: int, batches: list[Batch]) -> Path:
    """Named by all that the results depend on: the workload with all its fields, the data, and the reference."""
    driver = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256(
        msgspec.json.encode([blank.workload, blank.phase, blank.biases, blank.uncorrected_epsilon, seed])
    )
    digest.update(source_hash(driver / "reference", cells_package()).encode())
    digest.update(source_hash(driver / "verify", pattern=Path(__file__).name).encode())
    for batch in batches:
        for values in batch.values():
            digest.update(np.ascontiguousarray(values).data)
    return cache_folder() / "expected" / f"{digest.hexdigest()[:32]}.npz"


_LARGEST_FILE = 4 << 30


def _load(path: Path, blank: Expected) -> Expected | None:
    if not path.exists():
        return None
    try:
        arrays = read_arrays(path, path.parent, expected_bytes=_LARGEST_FILE)
    except DamagedArrays:
        return None
    return msgspec.structs.replace(
        blank,
        updates=int(arrays["updates"]),
        losses=tuple(float(value) for value in arrays["losses"]),
        moved={name.removeprefix("moved/"): array for name, array in arrays.items() if name.startswith("moved/")},
        first_logits=arrays["first"],
        unseen_logits=tuple(arrays[f"unseen/{k}"] for k in range(int(arrays["unseen"]))),
    )


def _store(path: Path, expected: Expected) -> None:
    arrays: dict[str, NDArray[np.generic]] = {
        "updates": np.array(expected.updates),
        "losses": np.array(expected.losses, dtype=np.float64),
        **{f"moved/{name}": array for name, array in expected.moved.items()},
        "first": expected.first_logits,
        "unseen": np.array(len(expected.unseen_logits)),
        **{f"unseen/{k}": array for k, array in enumerate(expected.unseen_logits)},
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    with suppress(OSError):  # without a cache it is computed again next time
        write_atomically(path, buffer.getvalue())
