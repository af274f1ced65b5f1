"""A plan as text: what would be run, what would not and why, and about how long it takes."""

import msgspec

from rnnbench.domain.case import Method
from rnnbench.plan import Plan
from rnnbench.report import units
from rnnbench.report.table import Column, render

_START = 4.0  # seconds to start a worker and import a framework
_FIRST = 3.0  # seconds of a first call that compiles nothing


def estimate(plan: Plan, method: Method) -> tuple[float, float]:
    """Seconds: what it takes when nothing compiles long, and the most the limits allow."""
    launch = _START + _FIRST + method.warm_seconds / 2 + method.sample_seconds
    verification = _START + _FIRST if method.verify else 0.0
    typical = len(plan.cases) * (method.launches * launch + verification)
    most = len(plan.cases) * (method.launches * (method.repeats + 1) + method.verify) * method.limit_seconds
    return typical, most


def show_plan(plan: Plan, method: Method) -> str:
    columns = [Column(name) for name in ("workload", "system", "phase", "device", "precision", "environment")]
    rows = [list(msgspec.structs.astuple(case)) for case in plan.cases]
    typical, most = estimate(plan, method)
    parts = [render(columns, rows)] if rows else []
    if plan.left_out:
        reasons: dict[str, list[str]] = {}
        for left in plan.left_out:
            names = reasons.setdefault(left.reason, [])
            if left.case.system not in names:
                names.append(left.case.system)
        lines = [f"  {', '.join(names)}: {reason}" for reason, names in reasons.items()]
        parts.append("left out as unsupported:\n" + "\n".join(lines))
    parts.append(
        f"{len(plan.cases)} cases, {method.launches} launches each, {len(plan.left_out)} left out; "
        f"about {units.duration(typical)} where nothing compiles long, at most {units.duration(most)} "
        f"(limit {method.limit_seconds:.0f} s a launch)"
    )
    return "\n\n".join(parts)


def plan_as_json(plan: Plan, method: Method) -> str:
    typical, most = estimate(plan, method)
    fields = {
        "cases": plan.cases,
        "left_out": plan.left_out,
        "method": method,
        "estimate_s": round(typical, 1),
        "at_most_s": round(most, 1),
    }
    return msgspec.json.format(msgspec.json.encode(fields), indent=2).decode()
