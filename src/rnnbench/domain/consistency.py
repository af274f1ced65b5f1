"""Whether the parts of a stored run fit together. The types check each value; this checks what no value shows alone."""

from collections.abc import Callable

import msgspec

from rnnbench.domain.bounds import require_name
from rnnbench.domain.catalog import is_workload_name, validated
from rnnbench.domain.profile import Profile, ProfileRecord
from rnnbench.domain.result import Launch, Limit, Record, Verification
from rnnbench.domain.run import Environment, Run
from rnnbench.errors import UserError


def require_consistent(run: Run) -> None:
    """Raise a ValueError unless every name leads somewhere, and every workload can be computed."""
    for name, workload in run.workloads.items():
        _require(workload.name == name, f"the workload {name!a} has another name inside")
        try:
            validated(workload)
        except UserError as error:
            raise ValueError(error.what) from error
    for name, system in run.systems.items():
        _require(system.name == name, f"the system {name!a} has another name inside")
        for part in (system.framework, system.granularity, system.execution):
            require_name(part, "a part of a system's name")
    for name, environment in run.environments.items():
        require_name(name, "an environment")
        require_usable(environment)
    for case in (*run.cases, *(left.case for left in run.left_out)):
        _require(case.workload in run.workloads, f"no workload here is named {case.workload!a}")
        _require(case.system in run.systems, f"no system here is named {case.system!a}")
        require_name(case.environment, "an environment")
    for case in run.cases:
        _require(case.environment in run.environments, f"no environment here is named {case.environment}")
        _require(case.workload in run.proved_on, f"{case.workload} has no small version")
    for name in run.proved_on.values():
        _require(is_workload_name(name), f"a workload cannot be named {name!a}")
    _require(len(set(run.cases)) == len(run.cases), "a case is in it twice")
    for node in run.machines:
        require_name(node, "a node")


def require_usable(environment: Environment) -> None:
    """Raise a ValueError unless its names can be those of files."""
    require_name(environment.id, "an environment")
    require_name(environment.framework, "a framework")
    require_name(environment.version, "a version")
    _require("\0" not in environment.python, "the interpreter is not a path")


def record_check(run: Run) -> Callable[[Record | ProfileRecord], None]:
    """A function that raises a ValueError for a record that is not whole, or is about something not in this run."""
    cases = frozenset(run.cases)
    small = frozenset(msgspec.structs.replace(case, workload=run.proved_on[case.workload]) for case in cases)

    def check(record: Record | ProfileRecord) -> None:
        _require(not record.node or record.node in run.machines, f"no node here is named {record.node!a}")
        if isinstance(record, Limit):
            _require(record.environment in run.environments, f"no environment here is named {record.environment!a}")
            return
        known = small if isinstance(record, Verification) else cases
        _require(record.case in known, "it is about a case that is not in this run")
        if isinstance(record, Launch) and record.outcome == "ok":
            _require(bool(record.samples), "a launch that is ok, but has no samples")
        if isinstance(record, Profile) and record.outcome == "ok":
            _require(record.wall_s > 0, "a profile that is ok, but whose batches took no time")
        if isinstance(record, Verification) and record.verdict == "verified":
            _require(all(figure.passes for figure in record.figures), "it is verified, but a figure of it is wrong")

    return check


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)
