"""What has to be proved for a set of cases: each system once per structure of workload."""

from collections.abc import Iterable, Mapping

import msgspec

from rnnbench.domain.case import Case
from rnnbench.domain.system import System
from rnnbench.domain.workload import Workload
from rnnbench.environments.environment import Environment
from rnnbench.machine import allowed_cpus, find_gpus
from rnnbench.manifests import manifests
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
    grouped: dict[tuple[str, ...], dict[str, Case]] = {}
    for case in cases:
        proved = msgspec.structs.replace(case, workload=small[case.workload].name)
        key = (proved.workload, proved.system, proved.device, proved.precision, proved.environment)
        grouped.setdefault(key, {})[proved.phase] = proved
    by_name = {workload.name: workload for workload in small.values()}
    return [
        Proof(
            cases=tuple(group[phase] for phase in sorted(group)),  # forward before train
            workload=by_name[key[0]],
            system=systems[key[1]],
            manifest=manifests()[systems[key[1]].framework],
            environment=environments[key[4]],
        )
        for key, group in grouped.items()
    ]


def verification_jobs(cases: Iterable[Case]) -> int:
    """As many at a time as there are cores, within reason; on a GPU as many as share its memory easily."""
    if any(case.device == "cuda" for case in cases):
        memory = min((gpu.memory_mib for gpu in find_gpus()), default=0)
        return max(2, min(12, memory // _GPU_SHARE_MIB, len(allowed_cpus()) * 3 // 4))
    return max(1, min(4, len(allowed_cpus())))
