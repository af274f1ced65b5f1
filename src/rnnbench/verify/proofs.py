"""What has to be proved for a set of cases: each system once per structure of workload."""

from collections.abc import Iterable, Mapping

import msgspec

from rnnbench.domain.case import Case
from rnnbench.domain.system import System
from rnnbench.domain.workload import Workload
from rnnbench.environments.environment import Environment
from rnnbench.launch.subject import Subject, find_subject
from rnnbench.machine import allowed_cpus, find_gpus
from rnnbench.verify.small import small_version
from rnnbench.verify.verifier import Proof

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
    grouped: dict[tuple[str, ...], dict[str, Subject]] = {}
    for case in cases:
        proved = msgspec.structs.replace(case, workload=small[case.workload].name)
        key = (proved.workload, proved.system, proved.device, proved.precision, proved.environment)
        grouped.setdefault(key, {})[proved.phase] = find_subject(proved, by_name, systems, environments)
    # Forward before train.
    return [Proof(tuple(group[phase] for phase in sorted(group))) for group in grouped.values()]


def verification_jobs(cases: Iterable[Case]) -> int:
    """As many at a time as there are cores, within reason; on a GPU as many as share its memory easily."""
    if any(case.device == "cuda" for case in cases):
        memory = min((gpu.memory_mib for gpu in find_gpus()), default=0)
        return max(2, min(12, memory // _GPU_SHARE_MIB, len(allowed_cpus()) * 3 // 4))
    return max(1, min(4, len(allowed_cpus())))
