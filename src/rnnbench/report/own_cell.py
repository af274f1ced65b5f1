"""The advice about a user's own cell, in one sentence for each phase: what to run it with, and what that is worth.

Only from rows that were timed and verified. A difference is named only where it was seen.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rnnbench import units
from rnnbench.analysis.row import MeasuredRow, Row, is_verified, over
from rnnbench.analysis.rows import measure_rows
from rnnbench.domain.workload import Workload
from rnnbench.stats.intervals import difference_verdict
from rnnbench.store import Contents
from rnnbench.text import wrapped

_WIDEST = 110
_WORTH_ANOTHER_LOOK = 1.1


def show_own_cell(contents: Contents, width: int | None = None) -> str:
    """Empty for a run without a cell of the user's own."""
    cells = [(workload, workload.own) for workload in contents.run.workloads.values() if workload.own]
    if not cells:
        return ""
    rows = [one for one in measure_rows(contents) if one.row.status != "unsupported"]
    parts = []
    for workload, own in cells:
        name = Path(own.path).name + (f":{own.class_name}" if own.class_name else "")
        lines = [*filter(None, [own.told]), *_advice(workload, rows)]
        fitted = (wrapped(line, "  ", "    ", min(width or _WIDEST, _WIDEST)) for line in lines)
        parts.append("\n".join([name, *fitted]))
    return "\n\n".join(parts)


def _advice(workload: Workload, rows: Sequence[MeasuredRow]) -> list[str]:
    mine = [one for one in rows if one.row.workload == workload.name]
    sentences = []
    for phase in dict.fromkeys(one.row.phase for one in mine):
        here = [one for one in mine if one.row.phase == phase]
        vendor = _find((one for one in rows if one.row.workload != workload.name), phase, "stack")
        sentences.append(f"{phase}: {_sentence(here, _find(here, phase, 'packed'), vendor)}")
    wrong = sorted({_short(one.row, mine) for one in mine if one.row.status == "wrong"})
    if wrong:
        sentences.append(
            f"not to be used: {units.listing(wrong)}, which computes something else than the cell in float64"
        )
    return sentences


def _find(rows: Iterable[MeasuredRow], phase: str, granularity: str) -> MeasuredRow | None:
    """PyTorch's eager row of this granularity: `packed` is the plain loop, `stack` is torch.nn.LSTM."""
    wanted = (f"pytorch/{granularity}/eager", phase)
    return next((one for one in rows if (one.row.system, one.row.phase) == wanted), None)


def _sentence(rows: Sequence[MeasuredRow], loop: MeasuredRow | None, vendor: MeasuredRow | None) -> str:
    if loop is not None and loop.row.status == "wrong":
        return (
            "nothing can be advised: your own loop does not compute in float32 what it computes in float64; it may "
            f"draw random numbers, keep something between calls, or need more precision ({loop.row.reason})"
        )
    verified = [one for one in rows if is_verified(one.row)]
    best = min(verified, key=lambda one: one.wall.estimate, default=None)
    if best is None:
        return "nothing can be advised: no row is verified"
    if loop is None or not is_verified(loop.row):
        return f"use {_short(best.row, rows)}: {_wall(best)} a batch, the fastest verified row{_end(best, vendor)}"
    gain = over(loop, best)
    if best is loop or difference_verdict(gain) != "slower":
        rest = [one for one in verified if one is not loop]
        others = [f"{_short(one.row, rows)} {units.times(over(one, loop).estimate)}" for one in rest]
        tried = f" ({', '.join(others)} its time)" if others else ""
        kept = f"keep your loop, {_wall(loop)} a batch: nothing is seen to be faster{tried}{_end(loop, vendor)}"
        # A launch's own luck is about this large: what seems to gain more is worth the time of another look.
        if gain.estimate < _WORTH_ANOTHER_LOOK:
            return kept
        return f"{kept}; {_short(best.row, rows)} may be {gain.estimate:.1f} times faster: --effort standard would tell"
    times = units.marked(f"{gain.estimate:.1f}", gain.uncertain)
    return (
        f"use {_short(best.row, rows)}: {_wall(best)} a batch, {times} times faster than your loop{_end(best, vendor)}"
    )


def _wall(measured: MeasuredRow) -> str:
    return units.marked(units.seconds(measured.wall.estimate), measured.row.uncertain)


def _end(used: MeasuredRow, vendor: MeasuredRow | None) -> str:
    """How the row that is advised stands beside the vendor's layer and the machine's limit."""
    parts = [_beside(used, vendor)] if vendor is not None and is_verified(vendor.row) else []
    parts += (
        [f"{units.share(used.row.limit_share)} of what this machine can do at most"] if used.row.limit_share else []
    )
    return f"; {', '.join(parts)}" if parts else ""


def _beside(best: MeasuredRow, vendor: MeasuredRow) -> str:
    name = "cuDNN's LSTM (torch.nn.LSTM)" if vendor.row.device == "cuda" else "torch.nn.LSTM"
    beside = over(best, vendor)
    return f"{units.marked(f'{beside.estimate:.1f}', beside.uncertain)} times the time of {name} of the same sizes"


def _short(row: Row, rows: Sequence[MeasuredRow]) -> str:
    """The execution alone, where all rows are of one framework."""
    alone = len({one.row.framework for one in rows}) == 1
    return row.execution if alone else row.system
