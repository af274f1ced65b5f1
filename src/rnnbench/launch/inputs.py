"""The numbers that programs are fed, as files that many of them share."""

from pathlib import Path

from rnnbench.domain.workload import Workload
from rnnbench.files import file_name
from rnnbench.reference.inputs import make_batches, make_parameters, write_inputs


def inputs_of(
    workload: Workload, seed: int, place: Path, batches: int, *, data: Path | None = None, kind: str = ""
) -> Path:
    """A workload's parameters and so many distinct batches; made only where the file is not there yet.

    `kind` tells workloads of the same name apart.
    """
    path = place / file_name(f"{workload.name} {kind} {batches}.npz")
    if not path.exists():
        write_inputs(path, make_parameters(workload, seed), make_batches(workload, batches, seed, data))
    return path
