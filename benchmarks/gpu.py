"""The published run on a GPU: all PyTorch and JAX systems, `ptb-lm` in both phases, the speech workloads in training.

`python benchmarks/gpu.py FOLDER` starts a run, or resumes the interrupted one in that folder. Workers compile
concurrently (`ahead`), and each is timed alone.
"""

import sys
from pathlib import Path

import rnnbench
from rnnbench.cli.progress import Progress
from rnnbench.method import make_method
from rnnbench.session import begin_run, resume

SYSTEMS = ["pytorch/*", "jax/*"]
SPEECH = ["ce-short", "ce-long", "bi-ce-long", "bi-ctc-long"]


def main() -> None:
    folder = Path(sys.argv[1])
    with Progress() as progress:
        if not (folder / "run.json").exists():
            plan = rnnbench.join_plans(
                rnnbench.make_plan(SYSTEMS, ["ptb-lm"], device="cuda", precisions=["fp32", "tf32"]),
                rnnbench.make_plan(SYSTEMS, SPEECH, phases=["train"], device="cuda"),
            )
            method = make_method(effort="quick", limit_seconds=60, ahead=12)
            begin_run(plan, method, folder, progress, command=("benchmarks/gpu.py",))
        try:
            resume(folder, progress)
        except KeyboardInterrupt:
            progress.note(f"interrupted: resume with the same command, everything that was done is in {folder}")
            sys.exit(130)


if __name__ == "__main__":
    main()
