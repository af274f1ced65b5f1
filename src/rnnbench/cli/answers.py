"""Texts that commands print: a plan with its estimate, verifications, and whether a run is fit to be published."""

from collections.abc import Sequence

import msgspec

from rnnbench import units
from rnnbench.analysis.check import Finding, is_fit
from rnnbench.domain.case import Case, Method
from rnnbench.plan import Plan
from rnnbench.text import RULE, Column, render_table
from rnnbench.verify.verifier import VerifiedPlan

_START_S = 4.0  # to start a worker and import a framework
_FIRST_CALL_S = 3.0  # when nothing is compiled


def estimate(plan: Plan, method: Method) -> tuple[float, float]:
    """Seconds that a run takes when no compilation takes long, and the most that the time limits allow."""
    launch = _START_S + _FIRST_CALL_S + method.warm_seconds / 2 + method.sample_seconds
    verification = _START_S + _FIRST_CALL_S if method.verify else 0.0
    typical = len(plan.cases) * (method.launches * launch + verification)
    most = len(plan.cases) * (method.launches * (method.repeats + 1) + method.verify) * method.limit_seconds
    return typical, most


def show_plan(plan: Plan, method: Method) -> str:
    columns = [Column(name) for name in ("workload", "system", "phase", "device", "precision", "environment")]
    rows = [list(msgspec.structs.astuple(case)) for case in plan.cases]
    typical, most = estimate(plan, method)
    parts = [render_table(columns, rows)] if rows else []
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
        f"about {units.duration(typical)} if no compilation takes long, at most {units.duration(most)} "
        f"(time limit {method.limit_seconds:.0f} s per launch)"
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


_VERIFICATION_COLUMNS = [
    Column(name) for name in ("workload", "system", "phase", "device", "precision", "status", "largest error")
]


def show_verifications(verified: VerifiedPlan) -> str:
    """One line per case, and a summary below."""
    cases = [*(one.case for one in verified.verifications), *(left.case for left in verified.left_out)]
    environments: dict[str, set[str]] = {}
    for case in cases:
        environments.setdefault(case.system, set()).add(case.environment)
    rows: list[list[str] | None] = []
    counts: dict[str, int] = {}

    def add(case: Case, status: str, detail: str) -> None:
        several = len(environments[case.system]) > 1  # versions of one framework
        system = f"{case.system} @ {case.environment}" if several else case.system
        workload = case.workload.partition("[")[0]
        rows.append([workload, system, case.phase, case.device, case.precision, status, detail])
        counts[status] = counts.get(status, 0) + 1

    for one in verified.verifications:
        add(one.case, one.verdict, one.reason or str(one.worst))
    if verified.left_out:
        rows.append(RULE)
        for left in verified.left_out:
            add(left.case, "unsupported", left.reason)
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    return f"{render_table(_VERIFICATION_COLUMNS, rows)}\n\n{summary}"


def verifications_as_fields(verified: VerifiedPlan) -> list[dict[str, object]]:
    """For `--json`: one object per case; unsupported cases have their reason."""
    fields: list[dict[str, object]] = []
    for one in verified.verifications:
        worst = one.worst
        fields.append(
            {
                **_case_fields(one.case),
                "status": one.verdict,
                "reason": one.reason,
                "largest_error": worst.error if worst else None,
                "quantity": worst.quantity if worst else None,
                "tolerance": worst.tolerance if worst else None,
                "figures": one.figures,
                "versions": one.versions,
                "seconds": one.seconds,
                "cached": one.cached,
            }
        )
    for left in verified.left_out:
        fields.append(
            {
                **_case_fields(left.case),
                "status": "unsupported",
                "reason": left.reason,
                "largest_error": None,
                "quantity": None,
                "tolerance": None,
            }
        )
    return fields


def _case_fields(case: Case) -> dict[str, object]:
    return {
        "workload": case.workload.partition("[")[0],
        "shape": case.workload,
        **{name: getattr(case, name) for name in ("system", "phase", "device", "precision", "environment")},
    }


_ROWS_SHOWN = 5  # under a finding


def show_check(findings: Sequence[Finding]) -> str:
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{finding.level:8} {finding.about}: {finding.what}")
        lines += [f"{'':8}   {key.replace('|', ' ')}" for key in finding.rows[:_ROWS_SHOWN]]
        if len(finding.rows) > _ROWS_SHOWN:
            lines.append(f"{'':8}   and {len(finding.rows) - _ROWS_SHOWN} more")
        if finding.advice:
            lines.append(f"{'':8} → {finding.advice}")
    return "\n".join([*lines, "", _check_summary(findings)])


def _check_summary(findings: Sequence[Finding]) -> str:
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    fit = "fit to publish" if is_fit(findings) else "not fit to publish"
    return f"{fit}: {problems} problems, {warnings} warnings"
