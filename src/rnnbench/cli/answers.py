"""Texts that commands print: a plan and the question before a long one, verifications, and whether a run is fit."""

import sys
from collections.abc import Sequence

import msgspec
import typer

from rnnbench import units
from rnnbench.analysis.check import Finding, is_fit
from rnnbench.cli.options import say
from rnnbench.domain.case import Case, Method
from rnnbench.errors import UserError
from rnnbench.estimate import estimate_run
from rnnbench.plan import Plan
from rnnbench.text import RULE, Column, render_fitted
from rnnbench.verify.verifier import VerifiedPlan

_ASKED_S = 3600.0  # a plan that takes longer is asked about


def require_consent(plan: Plan, method: Method, yes: bool) -> None:
    """Ask before a long run; where nobody can answer, refuse it. Nothing has been created or downloaded yet."""
    typical = estimate_run(plan, method).typical_s
    if yes or typical <= _ASKED_S:
        return
    what = f"{len(plan.cases)} cases take about {units.duration(typical)}"
    if sys.stdin.isatty() and sys.stderr.isatty():
        say(f"{what}; --dry-run lists them. After Ctrl-C, `rnnbench run --resume last` goes on.", err=True)
        if typer.confirm("Begin?", default=False, err=True):
            return
    raise UserError(
        f"{what}, and were not begun",
        "give --yes to begin, or choose fewer: systems, -w, --phase, --effort quick; --dry-run lists them",
    )


def show_plan(plan: Plan, method: Method, width: int | None = None) -> str:
    drop = {"precision": 2, "device": 1}
    columns = [
        Column(name, drop=drop.get(name, 0))
        for name in ("workload", "system", "phase", "device", "precision", "environment")
    ]
    rows = [list(msgspec.structs.astuple(case)) for case in plan.cases]
    typical, most, measured = estimate_run(plan, method)
    rate = "at this machine's rate" if measured else "at a guessed rate: this machine's is not known yet"
    parts = [render_fitted(columns, rows, width)[0]] if rows else []
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
        f"about {units.duration(typical)} if no compilation takes long ({rate}), at most {units.duration(most)} "
        f"(time limit {method.limit_seconds:.0f} s per launch)"
    )
    return "\n\n".join(parts)


def plan_as_json(plan: Plan, method: Method) -> str:
    typical, most, measured = estimate_run(plan, method)
    fields = {
        "cases": plan.cases,
        "left_out": plan.left_out,
        "method": method,
        "estimate_s": round(typical, 1),
        "at_most_s": round(most, 1),
        "rate_measured": measured,
    }
    return msgspec.json.format(msgspec.json.encode(fields), indent=2).decode()


_VERIFICATION_COLUMNS = [
    Column("workload"), Column("system"), Column("phase"), Column("device", drop=1), Column("precision", drop=2),
    Column("status"), Column("largest error"),
]  # fmt: skip


def show_verifications(verified: VerifiedPlan, width: int | None = None) -> str:
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
        rows.append([case.without_sizes, system, case.phase, case.device, case.precision, status, detail])
        counts[status] = counts.get(status, 0) + 1

    for one in verified.verifications:
        add(one.case, one.verdict, one.reason or str(one.worst))
    if verified.left_out:
        rows.append(RULE)
        for left in verified.left_out:
            add(left.case, "unsupported", left.reason)
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    return f"{render_fitted(_VERIFICATION_COLUMNS, rows, width)[0]}\n\n{summary}"


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
