"""How long a user waits for `rnnbench --help`, and for `rnnbench show` on a run of 2,000 cases."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from synthetic import write_run

REPEATS = 9


def median_seconds(*arguments: str) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "rnnbench", *arguments], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        write_run(run, cases=2000, launches=3, samples=40)
        for what, target, arguments in (
            ("rnnbench --help", 0.2, ["--help"]),
            ("rnnbench show, 2,000 cases of 3 launches and 40 samples", 1.0, ["show", str(run)]),
        ):
            seconds = median_seconds(*arguments)
            missed |= seconds > target
            verdict = "ok" if seconds <= target else "MISSED"
            print(f"{what}: {seconds:.3f} s (target {target} s, median of {REPEATS}) {verdict}")
    sys.exit(1 if missed else 0)


main()
