"""What a worker is given: a case with everything it refers to, the job as JSON fields, and the file of its inputs."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.run import Environment
from rnnbench.domain.system import Manifest, System
from rnnbench.domain.workload import Phase, Workload
from rnnbench.manifests import manifests
from rnnbench.reference.inputs import make_batches, make_parameters, write_inputs


class ResolvedCase(msgspec.Struct, frozen=True, kw_only=True):
    case: Case
    workload: Workload
    system: System
    manifest: Manifest
    environment: Environment


def resolve_case(
    case: Case,
    workloads: Mapping[str, Workload],
    systems: Mapping[str, System],
    environments: Mapping[str, Environment],
) -> ResolvedCase:
    """Look up everything the case names. The manifest is the one installed now, not the one of a stored run."""
    return ResolvedCase(
        case=case,
        workload=workloads[case.workload],
        system=systems[case.system],
        manifest=manifests()[case.framework],
        environment=environments[case.environment],
    )


def make_job(
    mode: str,
    resolved: ResolvedCase,
    method: Method,
    inputs: str,
    *,
    phases: tuple[Phase, ...] = (),
    arrays: str = "",
    variants: Sequence[dict[str, object]] = (),
) -> dict[str, object]:
    case, system, manifest = resolved.case, resolved.system, resolved.manifest
    return {
        "mode": mode,
        "framework": manifest.framework,
        "folder": str(manifest.path.resolve()),
        "system": system.name,
        "granularity": system.granularity,
        "execution": system.execution,
        "workload": workload_fields(resolved.workload),
        "phase": case.phase,
        "phases": phases,
        "device": case.device,
        "precision": case.precision,
        "threads": method.threads,
        "cpus": method.cpus,
        "memory_bytes": method.memory_bytes,
        "flush_denormals": method.flush_denormals,
        "method": {
            "protocol": method.protocol,
            "timing": method.timing,
            "warm_seconds": method.warm_seconds,
            "sample_seconds": method.sample_seconds,
            "precision_target": method.precision_target,
        },
        "inputs": inputs,
        "arrays": arrays,
        "variants": variants,
    }


def workload_fields(workload: Workload) -> dict[str, object]:
    """The workload's fields and the few that follow from them, so that no system derives them again."""
    return {
        **msgspec.structs.asdict(workload),
        "directions": workload.directions,
        "input_width": workload.input_width,
        "variable_length": workload.variable_length,
    }


def write_workload_inputs(
    workload: Workload, seed: int, folder: Path, batches: int, *, data: Path | None = None
) -> Path:
    """Write a workload's parameters and that many distinct batches, unless the file exists already.

    The file's name is a hash of all fields of the workload, so that different workloads of one name share no file.
    """
    digest = hashlib.sha256(msgspec.json.encode(workload)).hexdigest()[:16]
    path = folder / f"{digest}-{batches}.npz"
    if not path.exists():
        write_inputs(path, make_parameters(workload, seed), make_batches(workload, batches, seed, data))
    return path
