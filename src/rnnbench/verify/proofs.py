"""What is verified: each case on the small version of its workload, with cases that can share a worker grouped.

The small version has the same structure at sizes that the float64 NumPy reference computes quickly.
"""

from collections.abc import Iterable, Mapping

import msgspec

from rnnbench.domain.case import Case
from rnnbench.domain.catalog import validated
from rnnbench.domain.run import Environment
from rnnbench.domain.system import System
from rnnbench.domain.workload import Workload
from rnnbench.launch.job import ResolvedCase, resolve_case
from rnnbench.machine import allowed_cpus, find_gpus


class Proof(msgspec.Struct, frozen=True):
    """What one worker verifies: cases on a small workload that differ only in their phase."""

    resolved_cases: tuple[ResolvedCase, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(resolved.case for resolved in self.resolved_cases)


def proofs_for(
    cases: Iterable[Case],
    workloads: Mapping[str, Workload],
    systems: Mapping[str, System],
    environments: Mapping[str, Environment],
) -> list[Proof]:
    """Put the cases on small workloads, and group those that differ only in their phase."""
    small = {name: small_version(workload) for name, workload in workloads.items()}
    small_by_name = {workload.name: workload for workload in small.values()}
    grouped: dict[tuple[str, ...], dict[str, ResolvedCase]] = {}
    for case in cases:
        proved = msgspec.structs.replace(case, workload=small[case.workload].name)
        key = (proved.workload, proved.system, proved.device, proved.precision, proved.environment)
        grouped.setdefault(key, {})[proved.phase] = resolve_case(proved, small_by_name, systems, environments)
    return [Proof(tuple(group[phase] for phase in sorted(group))) for group in grouped.values()]  # forward, train


_GPU_MIB_PER_WORKER = 4096  # a context and the libraries' workspace; the small networks need next to none


def verification_jobs(cases: Iterable[Case]) -> int:
    """How many workers verify at once: one per core, at most 4; on a GPU as many as fit in its memory, at most 12."""
    if any(case.device == "cuda" for case in cases):
        memory = min((gpu.memory_mib for gpu in find_gpus()), default=0)
        return max(2, min(12, memory // _GPU_MIB_PER_WORKER, len(allowed_cpus()) * 3 // 4))
    return max(1, min(4, len(allowed_cpus())))


#: All different, so that a transposed or exchanged matrix cannot fit by chance.
_SIZES = {"batch": 5, "steps": 6, "hidden": 12}

#: One layer that reads the data, one that reads a layer, and one that reads a layer which reads a layer: with two, a
#: system that shares its deeper layers or leaves them out would be right. More would only take longer to compile.
_MOST_LAYERS = 3


def small_version(workload: Workload) -> Workload:
    """The workload at small sizes. Its cell, directions, head, lengths, loss and up to three layers stay.

    The name lists all sizes, so that workloads of the same structure share their small version and its verification.
    """
    sizes = {**_SIZES, "layers": min(workload.layers, _MOST_LAYERS)}
    if workload.own is not None:  # not every cell can be had at another width
        sizes = {"batch": 5, "steps": 6, "hidden": workload.hidden, "features": workload.features}
    elif workload.one_step:
        sizes = {"batch": 5, "features": 9, "hidden": 12}
    elif workload.vocabulary:
        sizes |= {"vocabulary": 31, "classes": 31, "embedding": 9}
    else:
        sizes |= {"features": 9, "classes": min(workload.classes, 10)}
    if workload.loss == "ctc":
        # The shortest sequence has just enough steps for its labels with a blank between them.
        sizes |= {"labels": 2}
        if workload.variable_length:
            sizes |= {"shortest": 3}
    named = {**sizes, **({"cell": workload.cell} if workload.cell != "lstm" else {})}
    overrides = ",".join(f"{name}={value}" for name, value in sorted(named.items()))
    return validated(msgspec.structs.replace(workload, name=f"{workload.id}[{overrides}]", **sizes))
