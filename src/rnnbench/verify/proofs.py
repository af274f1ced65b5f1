"""The small version of a workload: the same structure at sizes where float64 NumPy takes no time."""

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
    """What one worker is to prove: resolved_cases that differ in nothing but their phase, on a small workload."""

    resolved_cases: tuple[ResolvedCase, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(resolved.case for resolved in self.resolved_cases)


#: No two sizes alike, so that a transposed or mixed-up matrix cannot fit by chance.
_SIZES = {"batch": 5, "steps": 6, "hidden": 12}

#: One layer that reads the data and one that reads a layer: more would only be compiled for longer.
_LAYERS = 2


def small_version(workload: Workload) -> Workload:
    """Directions, head, lengths, loss and the layers (up to two) stay as they are.

    The name says all that was chosen, whatever was overridden before: workloads of one structure share
    their small version, and what is proved of it.
    """
    sizes = {**_SIZES, "layers": min(workload.layers, _LAYERS)}
    if workload.one_step:
        sizes = {"batch": 5, "features": 9, "hidden": 12}
    elif workload.vocabulary:
        sizes |= {"vocabulary": 31, "classes": 31, "embedding": 9}
    else:
        sizes |= {"features": 9, "classes": min(workload.classes, 10)}
    if workload.loss == "ctc":
        # The shortest sequence just holds its labels with a blank between any two.
        sizes |= {"labels": 2}
        if workload.variable_length:
            sizes |= {"shortest": 3}
    inside = ",".join(f"{name}={value}" for name, value in sorted(sizes.items()))
    return validated(msgspec.structs.replace(workload, name=f"{workload.id}[{inside}]", **sizes))


_GPU_SHARE_MIB = 4096  # a context and the libraries' workspace; the small networks themselves are nothing


def proofs_for(
    cases: Iterable[Case],
    workloads: Mapping[str, Workload],
    systems: Mapping[str, System],
    environments: Mapping[str, Environment],
) -> list[Proof]:
    """One proof per worker: cases that share everything but the phase share a process."""
    small = {name: small_version(workload) for name, workload in workloads.items()}
    by_name = {workload.name: workload for workload in small.values()}
    grouped: dict[tuple[str, ...], dict[str, ResolvedCase]] = {}
    for case in cases:
        proved = msgspec.structs.replace(case, workload=small[case.workload].name)
        key = (proved.workload, proved.system, proved.device, proved.precision, proved.environment)
        grouped.setdefault(key, {})[proved.phase] = resolve_case(proved, by_name, systems, environments)
    # Forward before train.
    return [Proof(tuple(group[phase] for phase in sorted(group))) for group in grouped.values()]


def verification_jobs(cases: Iterable[Case]) -> int:
    """As many at a time as there are cores, within reason; on a GPU as many as share its memory easily."""
    if any(case.device == "cuda" for case in cases):
        memory = min((gpu.memory_mib for gpu in find_gpus()), default=0)
        return max(2, min(12, memory // _GPU_SHARE_MIB, len(allowed_cpus()) * 3 // 4))
    return max(1, min(4, len(allowed_cpus())))
