"""How long `rnnbench compare` takes on two runs of 10,000 cases; the target is 5 s.

Every case has three launches, as at standard effort, of 50 samples, which is more than most have.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from synthetic import write_run

CASES, LAUNCHES, SAMPLES = 10_000, 3, 50
REPEATS = 3
TARGET = 5.0


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / name for name in ("a", "b")]
        for seed, run in enumerate(runs):
            write_run(run, CASES, LAUNCHES, SAMPLES, seed)
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            command = [sys.executable, "-m", "rnnbench", "compare", *map(str, runs)]
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            times.append(time.perf_counter() - start)
    seconds = statistics.median(times)
    verdict = "ok" if seconds <= TARGET else "MISSED"
    print(
        f"rnnbench compare, twice {CASES:,} cases of {LAUNCHES} launches and {SAMPLES} samples: "
        f"{seconds:.2f} s (target {TARGET:g} s, median of {REPEATS}) {verdict}"
    )
    sys.exit(0 if seconds <= TARGET else 1)


main()
