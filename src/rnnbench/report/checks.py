"""What `rnnbench check` prints."""

from collections.abc import Sequence

from rnnbench.analysis.check import Finding, is_fit

_SHOWN = 5  # rows under a finding


def as_text(findings: Sequence[Finding]) -> str:
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{finding.level:8} {finding.about}: {finding.what}")
        lines += [f"{'':8}   {key.replace('|', ' ')}" for key in finding.rows[:_SHOWN]]
        if len(finding.rows) > _SHOWN:
            lines.append(f"{'':8}   and {len(finding.rows) - _SHOWN} more")
        if finding.advice:
            lines.append(f"{'':8} → {finding.advice}")
    return "\n".join([*lines, "", _verdict(findings)])


def _verdict(findings: Sequence[Finding]) -> str:
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    fit = "fit to publish" if is_fit(findings) else "not fit to publish"
    return f"{fit}: {problems} problems, {warnings} warnings"
