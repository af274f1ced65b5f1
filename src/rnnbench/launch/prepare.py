"""Making the environments a plan needs. One that cannot be had takes its own cases with it, no others."""

import msgspec

from rnnbench.domain.case import Case, LeftOut
from rnnbench.environments.environment import Environment
from rnnbench.environments.registry import resolve
from rnnbench.errors import UserError
from rnnbench.launch.listener import Listener
from rnnbench.plan import Plan


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """What can be run now, and in what."""

    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...]
    environments: dict[str, Environment]


def prepare(plan: Plan, listener: Listener) -> Ready:
    """A UserError only when nothing at all can be run."""
    needed = {case.environment for case in plan.cases}
    environments: dict[str, Environment] = {}
    failures: dict[str, UserError] = {}
    for identifier, spec in plan.specs.items():
        if identifier not in needed:
            continue
        try:
            environments[identifier] = resolve(spec, create_missing=True, report=listener.note)
        except UserError as error:
            failures[identifier] = error
            listener.note(f"{identifier}: {error.what}")
    cases = tuple(case for case in plan.cases if case.environment in environments)
    if not cases and failures:
        raise next(iter(failures.values()))
    if not cases:
        reasons = "; ".join(sorted({left.reason for left in plan.left_out}))
        raise UserError("nothing of what was chosen can be run here", reasons)
    lost = tuple(
        LeftOut(case=case, reason=failures[case.environment].what)
        for case in plan.cases
        if case.environment in failures
    )
    return Ready(cases=cases, left_out=(*plan.left_out, *lost), environments=environments)
