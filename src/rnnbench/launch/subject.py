"""A case with everything it refers to: what has to be known to run it."""

from collections.abc import Mapping

import msgspec

from rnnbench.domain.case import Case
from rnnbench.domain.system import Manifest, System
from rnnbench.domain.workload import Workload
from rnnbench.environments.environment import Environment
from rnnbench.manifests import manifests


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    case: Case
    workload: Workload
    system: System
    manifest: Manifest
    environment: Environment


def find_subject(
    case: Case,
    workloads: Mapping[str, Workload],
    systems: Mapping[str, System],
    environments: Mapping[str, Environment],
) -> Subject:
    """Looked up by the names the case has; the framework's manifest is the one that lies here now."""
    return Subject(
        case=case,
        workload=workloads[case.workload],
        system=systems[case.system],
        manifest=manifests()[case.framework],
        environment=environments[case.environment],
    )
