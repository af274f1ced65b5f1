"""The numbers that profiled programs are fed, as files that many of them share."""

from pathlib import Path

from rnnbench.domain.workload import Workload
from rnnbench.reference.inputs import make_batches, make_parameters, write_inputs

BATCHES = 2  # distinct ones, fed in turn


def inputs_of(workload: Workload, seed: int, place: Path, kind: str = "", batches: int = BATCHES) -> Path:
    """A workload's parameters and batches as a file; made only where it is not there yet."""
    name = "".join(letter if letter.isalnum() else "-" for letter in f"{workload.name} {kind}")
    path = place / f"{name}.npz"
    if not path.exists():
        write_inputs(path, make_parameters(workload, seed), make_batches(workload, batches, seed))
    return path
