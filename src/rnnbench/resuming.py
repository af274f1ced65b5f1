"""What must hold before a run goes on: frameworks, interpreters, environments and programs are those it began with."""

import hashlib
import sys
from pathlib import Path

from rnnbench.domain.run import Run
from rnnbench.environments.environment import arithmetic_variables, fingerprint, inspect_python
from rnnbench.environments.holding import is_known
from rnnbench.environments.registry import list_environments
from rnnbench.errors import UserError
from rnnbench.files import read_regular
from rnnbench.manifests import describe_tool, manifests


class UnknownInterpreter(UserError):
    """A stored run names an interpreter that was neither created here nor named with `env use`, or a file to import."""


def require_frameworks(run: Run) -> None:
    """Raise a UserError if a framework of the run is not installed here."""
    missing = sorted({case.framework for case in run.cases} - set(manifests()))
    if missing:
        raise UserError(
            f"this run needs {', '.join(missing)}, which is not among the frameworks here",
            "add its folder to RNNBENCH_SYSTEMS, or install the package that provides it",
        )


def require_known_interpreters(run: Run) -> None:
    """Raise an error unless every interpreter that the run names is one that this user chose."""
    known = list_environments()
    for environment in run.environments.values():
        if environment.python != sys.executable and not is_known(environment, known):
            raise UnknownInterpreter(
                f"this run would start {environment.python}, which is not an environment here",
                f"if you trust the run, give --trust; or make the interpreter known: rnnbench env create "
                f"{environment.framework}=={environment.version}, or rnnbench env use",
            )


def require_trusted_cells(run: Run) -> None:
    """Raise an error if the run would import a file: a run folder may come from elsewhere."""
    for workload in run.workloads.values():
        if workload.own is not None:
            raise UnknownInterpreter(
                f"this run would import {workload.own.path}", "if you trust the run and this file, give --trust"
            )


def require_same_cells(run: Run) -> None:
    """Raise a UserError unless the files of a user's own cells are those that the run began with."""
    for workload in run.workloads.values():
        if workload.own is None:
            continue
        path = Path(workload.own.path)
        try:
            digest = hashlib.sha256(read_regular(path)).hexdigest()
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}", "this run is about the cell in it") from error
        if digest != workload.own.digest:
            raise UserError(f"{path} has changed since this run began", "start a new run: no row may mix two cells")


def require_same_environments(run: Run) -> None:
    """Raise a UserError unless the run can be resumed in the environments it began in."""
    for environment in run.environments.values():
        now = inspect_python(Path(environment.python), external=environment.external)
        if fingerprint(now) != environment.fingerprint:
            raise UserError(
                f"the environment {environment.id} has changed since this run began",
                "start a new run: rows from different environments must not share a name",
            )


def require_same_programs(run: Run) -> None:
    """Raise a UserError unless the rows that are left would be computed by the programs that the others were."""
    now, then = describe_tool(), run.tool
    frameworks = sorted({case.framework for case in run.cases})
    changed = [f"the source of {name}" for name in frameworks if now.sources[name] != then.sources.get(name)]
    if now.reference != then.reference:
        changed.append("the reference")
    variables = {**arithmetic_variables(), **run.variables}
    changed += [
        f"the variable {name}"
        for name in sorted(variables)
        if arithmetic_variables().get(name) != run.variables.get(name)
    ]
    if changed:
        raise UserError(
            f"since this run began, {', '.join(changed[:4])} {'has' if len(changed) == 1 else 'have'} changed",
            "start a new run: no row may mix two programs",
        )
