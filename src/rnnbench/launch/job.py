"""What a worker is given: a case with everything it refers to, the job as JSON fields, and the file of its inputs."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.run import Environment
from rnnbench.domain.system import Manifest, System
from rnnbench.domain.workload import Phase, Workload, cell_shapes
from rnnbench.manifests import manifests
from rnnbench.reference.inputs import Batch, few_sequences, make_batches, make_parameters, write_inputs

REPEATED_BATCHES = 4  # distinct batches that are timed, fed in turn
UNSEEN_BATCHES = 2  # further ones that only follow the samples; each repeats a few sequences


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
    check: dict[str, object] | None = None,
    full_speed_s: float | None = None,
    abilities: Sequence[str] = (),
) -> dict[str, object]:
    """`check`: what the timed program delivers of its results at full size; None: nothing.

    `full_speed_s`: what the fixed computation takes at full speed, for a worker that is timed where it is quiet.
    """
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
        "quiet": {
            "count": method.quiet_cpus,
            "threshold": method.noise_threshold,
            "full_speed_s": full_speed_s,
            "sample_seconds": method.sample_seconds,
        }
        if is_watched(case, method)
        else None,
        "memory_bytes": method.memory_bytes,
        "flush_denormals": method.flush_denormals,
        "method": {
            "protocol": method.protocol,
            "timing": method.timing,
            "warm_seconds": method.warm_seconds,
            "sample_seconds": method.sample_seconds,
            "precision_target": method.precision_target,
            "limit_seconds": method.limit_seconds,
        },
        "inputs": inputs,
        "repeated": REPEATED_BATCHES,
        "check": check,
        "arrays": arrays,
        "profile_folder": arrays if mode == "profile" else "",
        "variants": variants,
        "abilities": abilities,
    }


def is_watched(case: Case, method: Method) -> bool:
    """Whether a worker is timed only on processors that are quiet: then it probes them itself."""
    return bool(method.quiet_cpus) and case.device == "cuda" and method.protocol == "adaptive"


def workload_fields(workload: Workload) -> dict[str, object]:
    """The workload's fields and the few that follow from them, so that no system derives them again."""
    return {
        **msgspec.structs.asdict(workload),
        "directions": workload.directions,
        "weights": tuple(cell_shapes(workload, 0)),
        "input_width": workload.input_width,
        "variable_length": workload.variable_length,
    }


def timed_batches(workload: Workload, seed: int, data: Path | None = None) -> list[Batch]:
    """All batches of a timed launch: those that are repeated, then those that are never seen before."""
    batches = make_batches(workload, REPEATED_BATCHES + UNSEEN_BATCHES, seed, data)
    return batches[:REPEATED_BATCHES] + [few_sequences(batch).batch for batch in batches[REPEATED_BATCHES:]]


def write_timed_inputs(workload: Workload, seed: int, folder: Path, *, data: Path | None = None) -> Path:
    """Write the parameters and batches of timed launches, unless the file exists already."""
    return _write_once(workload, folder, "timed", seed, lambda: timed_batches(workload, seed, data))


def write_workload_inputs(workload: Workload, seed: int, folder: Path, batches: int) -> Path:
    """Write a workload's parameters and that many distinct batches, unless the file exists already."""
    return _write_once(workload, folder, str(batches), seed, lambda: make_batches(workload, batches, seed))


def _write_once(workload: Workload, folder: Path, what: str, seed: int, make: Callable[[], list[Batch]]) -> Path:
    """The file is named by a hash of all fields of the workload: different workloads of one name share no file."""
    digest = hashlib.sha256(msgspec.json.encode(workload)).hexdigest()[:16]
    path = folder / f"{digest}-{what}.npz"
    if not path.exists():
        write_inputs(path, make_parameters(workload, seed), make())
    return path
