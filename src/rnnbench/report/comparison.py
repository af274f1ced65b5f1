"""Two runs side by side as text, as Markdown and as JSON."""

from collections.abc import Sequence

import msgspec

from rnnbench import units
from rnnbench.analysis.compare import COMPARISON_VERDICTS, CaseComparison, RunComparison
from rnnbench.analysis.differences import CROSSABLE
from rnnbench.domain.case import Case
from rnnbench.domain.run import Run
from rnnbench.text import Column, escape_markdown, markdown_table, render_fitted

COLUMNS = (
    Column("system"),
    Column("A", right=True, drop=2),
    Column("B", right=True, drop=2),
    Column("B / A", right=True),
    Column("95 % interval", drop=1),
    Column("verdict"),
)
_NUMBERS = (1, 2, 3)

LEGEND = f"""\
B / A       time of a batch in B over that in A: above 1 B is slower
interval    of that ratio, by Student's t over launches, with a variance moderated by the other cases
{units.UNCERTAIN_MARK:12}{units.UNCERTAIN_MEANING}
verdict     a difference counts only if the whole interval lies beyond ±{{threshold:g}} %; ~ the machine was busy"""

_ONE_LAUNCH = (
    "one launch: how launches differ is unknown, so the interval has an allowance for it (docs/method.md); "
    "measure with --launches 3 or more"
)


class NamedRun(msgspec.Struct, frozen=True):
    """A run with its name, described in one line."""

    name: str
    run: Run

    def __str__(self) -> str:
        machine = self.run.machine
        gpus = "".join(f", {gpu.name}" for gpu in machine.gpus)
        environments = ", ".join(sorted({case.environment for case in self.run.cases}))
        return f"{self.name}: {self.run.created}, {machine.cpu}{gpus}, {environments}"


def as_text(
    comparison: RunComparison, a: NamedRun, b: NamedRun, failures: Sequence[str], width: int | None = None
) -> str:
    parts = [f"A  {a}\nB  {b}"]
    for title, cases in _groups(comparison):
        parts.append(f"{title}\n" + render_fitted(COLUMNS, [_cells(case) for case in cases], width, indent="  ")[0])
    parts.append(LEGEND.format(threshold=100 * comparison.threshold))
    if lines := _remarks(comparison):
        parts.append("\n".join(lines))
    parts.append(_summary(comparison))
    parts += [f"failed: {failure}" for failure in failures]
    return "\n\n".join(parts)


def as_markdown(comparison: RunComparison, a: NamedRun, b: NamedRun, failures: Sequence[str]) -> str:
    """For a pull request: the summary and failures come first."""
    parts = [f"**{_summary(comparison)}**"]
    parts += [f"**failed:** {escape_markdown(failure)}" for failure in failures]
    parts.append(f"- A: {escape_markdown(str(a))}\n- B: {escape_markdown(str(b))}")
    headings = [column.heading for column in COLUMNS]
    for title, cases in _groups(comparison):
        rows = [[escape_markdown(cell) for cell in _cells(case)] for case in cases]
        parts.append(f"### {escape_markdown(title)}\n\n" + markdown_table(headings, rows, _NUMBERS))
    remarks = [*LEGEND.format(threshold=100 * comparison.threshold).splitlines(), *_remarks(comparison)]
    parts.append("\n".join(f"- {escape_markdown(line)}" for line in remarks))
    return "\n\n".join(parts)


def as_fields(comparison: RunComparison, a: NamedRun, b: NamedRun, failures: Sequence[str]) -> dict[str, object]:
    """For JSON."""
    return {
        "a": _run_fields(a),
        "b": _run_fields(b),
        "failures": failures,
        "counts": {verdict: comparison.count(verdict) for verdict in COMPARISON_VERDICTS},
        **msgspec.structs.asdict(comparison),
    }


def _run_fields(named: NamedRun) -> dict[str, object]:
    run = named.run
    return {"run": named.name, "created": run.created, "tool": run.tool, "machine": run.machine, "method": run.method}


def _groups(comparison: RunComparison) -> list[tuple[str, list[CaseComparison]]]:
    """One table per workload, phase, device and precision; the largest slowdown first, cases without a ratio last."""
    groups: dict[tuple[str, str, str, str], list[CaseComparison]] = {}
    for case in comparison.cases:
        groups.setdefault(case.group, []).append(case)
    for cases in groups.values():
        cases.sort(key=lambda case: (case.ratio_low is None, -(case.ratio or 0.0)))
    return [(" · ".join(group), cases) for group, cases in groups.items()]


def _cells(case: CaseComparison) -> list[str]:
    environments = dict.fromkeys((case.environment_a, case.environment_b))
    marks = ("" if case.steady else ", not steady") + ("~" if case.noisy else "")
    unverified = [name for name, status in (("A", case.status_a), ("B", case.status_b)) if status == "unverified"]
    verdict = case.verdict + marks
    if case.reason:
        verdict += f": {case.reason}"
    elif unverified:
        verdict += f" (unverified in {' and '.join(unverified)})"
    known = case.ratio_low is not None and case.ratio_high is not None
    return [
        f"{case.system} @ {' → '.join(environments)}",
        units.marked(units.seconds(case.a_s), case.uncertain_a),
        units.marked(units.seconds(case.b_s), case.uncertain_b),
        "–" if case.ratio is None else units.marked(f"{case.ratio:.3f}×", case.ratio_uncertain),
        f"[{case.ratio_low:.3f}, {case.ratio_high:.3f}]" if known else "",
        verdict,
    ]


def _remarks(comparison: RunComparison) -> list[str]:
    """What a reader must know besides the figures, one line each."""
    kinds = sorted({kind for case in comparison.cases for kind in case.differing if kind in CROSSABLE})
    return [
        *(f"compared across {difference}" for difference in comparison.crossed),
        *(f"not comparable because of {difference}" for difference in comparison.stopping),
        *([f"if that is what you compare, add --across {','.join(kinds)}"] if kinds else []),
        *([_ONE_LAUNCH] if any(1 in (case.launches_a, case.launches_b) for case in comparison.cases) else []),
        *(f"note: {note}" for note in comparison.notes),
        *_missing("A", comparison.only_in_a),
        *_missing("B", comparison.only_in_b),
    ]


def _missing(run: str, cases: Sequence[Case]) -> list[str]:
    names = sorted({f"{case.system} @ {case.environment} ({case.workload} {case.phase})" for case in cases})
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [f"only in {run}, {len(cases)} cases: {shown}"] if cases else []


def _summary(comparison: RunComparison) -> str:
    counts = ", ".join(f"{comparison.count(verdict)} {verdict}" for verdict in COMPARISON_VERDICTS)
    mean = ""
    if comparison.geometric_mean is not None:
        ratio, low, high, uncertain = msgspec.structs.astuple(comparison.geometric_mean)
        mean = f"; geometric mean of B / A {units.marked(f'{ratio:.3f}×', uncertain)}"
        mean += "" if low is None else f" [{low:.3f}, {high:.3f}]"
    return f"{len(comparison.cases)} cases in both runs: {counts}{mean}"
