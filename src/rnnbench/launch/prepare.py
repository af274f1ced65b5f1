"""Create the environments a plan needs. Where one cannot be created, its cases are left out and the others stay."""

import msgspec

from rnnbench.domain.case import Case, LeftOut
from rnnbench.domain.run import Environment
from rnnbench.environments.create import Passing, Report, make_all
from rnnbench.environments.registry import resolve
from rnnbench.environments.spec import EnvironmentSpec
from rnnbench.errors import UserError
from rnnbench.launch.listener import Listener
from rnnbench.plan import Plan


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """The cases that can be run now, those left out, and the environments."""

    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...]
    environments: dict[str, Environment]


def prepare(plan: Plan, listener: Listener) -> Prepared:
    """Raises a UserError only when no case can be run."""
    needed = {case.environment for case in plan.cases}
    specs = {identifier: spec for identifier, spec in plan.specs.items() if identifier in needed - set(plan.given)}

    def report(line: str) -> None:
        (listener.preparing if isinstance(line, Passing) else listener.note)(line)

    made = dict(zip(specs, make_all(list(specs.values()), _find_or_create, report), strict=True))
    environments = {identifier: one for identifier, one in made.items() if isinstance(one, Environment)}
    environments |= {identifier: one for identifier, one in plan.given.items() if identifier in needed}
    failures = {identifier: one for identifier, one in made.items() if isinstance(one, UserError)}
    cases = tuple(case for case in plan.cases if case.environment in environments)
    if not cases and failures:
        raise next(iter(failures.values()))
    if not cases:
        reasons = "; ".join(sorted({left.reason for left in plan.left_out}))
        raise UserError("none of the chosen cases can be run here", reasons)
    without_environment = tuple(
        # The first line says why; pip's output is in the environment's log.
        LeftOut(case=case, reason=failures[case.environment].what.splitlines()[0])
        for case in plan.cases
        if case.environment in failures
    )
    return Prepared(cases=cases, left_out=(*plan.left_out, *without_environment), environments=environments)


def _find_or_create(spec: EnvironmentSpec, report: Report) -> Environment:
    return resolve(spec, create_missing=True, report=report)
