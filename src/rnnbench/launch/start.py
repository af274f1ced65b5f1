"""Whether a framework starts at all in its environment: imported and asked, as for every launch, and nothing else."""

from rnnbench.domain.case import Case
from rnnbench.domain.catalog import CATALOG
from rnnbench.environments.environment import Environment
from rnnbench.launch.job import make_job
from rnnbench.launch.subject import Subject
from rnnbench.launch.worker import run_worker
from rnnbench.manifests import manifests
from rnnbench.method import make_method

_SECONDS = 120.0  # the slowest import takes twenty, from a cold disk


def why_not_started(environment: Environment) -> str:
    """Empty when it starts."""
    manifest = manifests().get(environment.framework)
    if manifest is None:
        return f"no manifest is for {environment.framework}"
    system, workload = manifest.system[0], CATALOG["ce-short"]
    case = Case(
        workload=workload.name,
        system=system.name,
        phase="forward",
        device="cpu",
        precision="fp32",
        environment=environment.id,
    )
    subject = Subject(case=case, workload=workload, system=system, manifest=manifest, environment=environment)
    job = make_job("start", subject, make_method(), "")
    ending = run_worker(environment, job, manifest.variables, _SECONDS)
    return "" if ending.outcome == "ok" else f"{ending.outcome} during {ending.stage}: {ending.reason}"
