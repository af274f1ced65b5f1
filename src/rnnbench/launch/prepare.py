"""Making the environments that a plan needs. One that cannot be made takes its own cases with it, no others."""

import msgspec

from rnnbench.domain.case import Case, LeftOut
from rnnbench.domain.run import Environment
from rnnbench.environments.create import Report, make_all
from rnnbench.environments.registry import resolve
from rnnbench.environments.spec import EnvironmentSpec
from rnnbench.errors import UserError
from rnnbench.launch.listener import Listener
from rnnbench.plan import Plan


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """What can be run now, and in what."""

    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...]
    environments: dict[str, Environment]


def prepare(plan: Plan, listener: Listener) -> Prepared:
    """A UserError only when nothing at all can be run."""
    needed = {case.environment for case in plan.cases}
    specs = {identifier: spec for identifier, spec in plan.specs.items() if identifier in needed}
    made = dict(zip(specs, make_all(list(specs.values()), _resolve, listener.note), strict=True))
    environments = {identifier: one for identifier, one in made.items() if isinstance(one, Environment)}
    failures = {identifier: one for identifier, one in made.items() if isinstance(one, UserError)}
    cases = tuple(case for case in plan.cases if case.environment in environments)
    if not cases and failures:
        raise next(iter(failures.values()))
    if not cases:
        reasons = "; ".join(sorted({left.reason for left in plan.left_out}))
        raise UserError("nothing of what was chosen can be run here", reasons)
    lost = tuple(
        # The first line says why; what pip printed is in its log.
        LeftOut(case=case, reason=failures[case.environment].what.splitlines()[0])
        for case in plan.cases
        if case.environment in failures
    )
    return Prepared(cases=cases, left_out=(*plan.left_out, *lost), environments=environments)


def _resolve(spec: EnvironmentSpec, report: Report) -> Environment:
    return resolve(spec, create_missing=True, report=report)
