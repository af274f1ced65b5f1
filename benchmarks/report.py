"""How long `rnnbench report` takes for 10,000 cases of 50 samples in all formats; the target is 10 s.

The samples of a case come from two launches. A run with three launches of 50 samples each, three times as many, is also
measured and has no target.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from synthetic import write_run

CASES = 10_000
REPEATS = 3
TARGET = 10.0


def median_seconds(run: Path, out: Path) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        command = [sys.executable, "-m", "rnnbench", "report", str(run), "--out", str(out)]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for launches, samples, target in ((2, 25, TARGET), (3, 50, None)):
            run, out = Path(folder) / f"run-{launches}", Path(folder) / f"report-{launches}"
            write_run(run, CASES, launches, samples)
            seconds = median_seconds(run, out)
            size = (out / "report.html").stat().st_size / 1e6
            verdict = "" if target is None else f", target {target:g} s: {'ok' if seconds <= target else 'MISSED'}"
            missed |= target is not None and seconds > target
            print(
                f"rnnbench report, {CASES:,} cases of {launches} launches and {samples} samples: "
                f"{seconds:.2f} s (median of {REPEATS}{verdict}; the page has {size:.1f} MB)"
            )
    sys.exit(1 if missed else 0)


main()
