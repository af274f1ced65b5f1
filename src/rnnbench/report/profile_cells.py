"""What a profile adds to a row of a table, wherever it is printed."""

from rnnbench.analysis.rows import Row
from rnnbench.report import units

PROFILE_LEGEND = """
operators   of one batch, by the framework's own profiler in a launch of its own; kernels and copies on a GPU
no operator the share of a batch in which none runs, or the device waits for the host
new …       what one sequence or one step more costs at first: kept, rebuilt, uncounted or anew (docs/profiling.md)"""


def was_profiled(row: Row) -> bool:
    return row.operators is not None or row.new_batch_s is not None


def profile_cells(row: Row) -> list[str]:
    return [
        f"{row.operators:,.0f}" if row.operators is not None else "–",
        units.share(row.host_share),
        f"{units.seconds(row.new_batch_s)}, {row.new_batch}" if row.new_batch else "–",
        f"{units.seconds(row.new_length_s)}, {row.new_length}" if row.new_length else "–",
    ]
