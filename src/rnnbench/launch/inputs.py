"""The numbers that programs are fed, as files that many of them share."""

import hashlib
from pathlib import Path

import msgspec

from rnnbench.domain.workload import Workload
from rnnbench.reference.inputs import make_batches, make_parameters, write_inputs


def inputs_of(workload: Workload, seed: int, place: Path, batches: int, *, data: Path | None = None) -> Path:
    """A workload's parameters and so many distinct batches; made only where the file is not there yet.

    Its name is made of all that a workload is: two of the same name, or of names that look alike, share no file.
    """
    digest = hashlib.sha256(msgspec.json.encode(workload)).hexdigest()[:16]
    path = place / f"{digest}-{batches}.npz"
    if not path.exists():
        write_inputs(path, make_parameters(workload, seed), make_batches(workload, batches, seed, data))
    return path
