"""The job a worker is given: one case with everything it needs, as plain JSON."""

from collections.abc import Sequence

import msgspec

from rnnbench.domain.case import Method
from rnnbench.domain.workload import Phase, Workload
from rnnbench.launch.subject import Subject


def workload_fields(workload: Workload) -> dict[str, object]:
    """The workload's own numbers, and the few that follow from them, so that no system derives them again."""
    return {
        **msgspec.structs.asdict(workload),
        "directions": workload.directions,
        "input_width": workload.input_width,
        "variable_length": workload.variable_length,
    }


def make_job(
    mode: str,
    subject: Subject,
    method: Method,
    inputs: str,
    *,
    phases: tuple[Phase, ...] = (),
    arrays: str = "",
    variants: Sequence[dict[str, object]] = (),
) -> dict[str, object]:
    case, system, manifest = subject.case, subject.system, subject.manifest
    return {
        "mode": mode,
        "framework": manifest.framework,
        "folder": str(manifest.path.resolve()),
        "system": system.name,
        "granularity": system.granularity,
        "execution": system.execution,
        "workload": workload_fields(subject.workload),
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
