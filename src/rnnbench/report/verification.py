"""Verification results as a table and as fields for a script."""

from rnnbench.domain.case import Case
from rnnbench.report.table import RULE, Column, render
from rnnbench.verify.session import Session

_COLUMNS = [Column(name) for name in ("workload", "system", "phase", "device", "precision", "status", "largest error")]


def show_verifications(session: Session) -> str:
    """One line per case; a summary under them."""
    cases = [*(one.case for one in session.verifications), *(left.case for left in session.left_out)]
    places: dict[str, set[str]] = {}
    for case in cases:
        places.setdefault(case.system, set()).add(case.environment)
    rows: list[list[str] | None] = []
    counts: dict[str, int] = {}

    def add(case: Case, status: str, detail: str) -> None:
        several = len(places[case.system]) > 1  # versions of one framework
        system = f"{case.system} @ {case.environment}" if several else case.system
        workload = case.workload.partition("[")[0]
        rows.append([workload, system, case.phase, case.device, case.precision, status, detail])
        counts[status] = counts.get(status, 0) + 1

    for one in session.verifications:
        add(one.case, one.verdict, one.reason or str(one.worst))
    if session.left_out:
        rows.append(RULE)
        for left in session.left_out:
            add(left.case, "unsupported", left.reason)
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    return f"{render(_COLUMNS, rows)}\n\n{summary}"


def as_fields(session: Session) -> list[dict[str, object]]:
    """For `--json`: one object per case, the unsupported ones with their reason."""
    fields: list[dict[str, object]] = []
    for one in session.verifications:
        worst = one.worst
        fields.append(
            {
                "workload": one.case.workload.partition("[")[0],
                "shape": one.case.workload,
                "system": one.case.system,
                "phase": one.case.phase,
                "device": one.case.device,
                "precision": one.case.precision,
                "environment": one.case.environment,
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
    for left in session.left_out:
        case = left.case
        fields.append(
            {
                "workload": case.workload.partition("[")[0],
                "shape": case.workload,
                "system": case.system,
                "phase": case.phase,
                "device": case.device,
                "precision": case.precision,
                "environment": case.environment,
                "status": "unsupported",
                "reason": left.reason,
                "largest_error": None,
                "quantity": None,
                "tolerance": None,
            }
        )
    return fields
