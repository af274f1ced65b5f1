"""The published runs on a GPU: a row for each of the tables of 2018 and 2019, and the fastest of every framework.

`python benchmarks/gpu.py FOLDER WORKLOAD… [--groups PHASE/PRECISION …] [--chosen]` starts a run, or resumes the one in
that folder. Workers compile concurrently, and each is timed alone, on a quiet processor. When every row has three
launches, those with a wide interval, or with too few quiet launches, get six, and then ten: on a host with other
tenants, launches of host-bound rows differ.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

import rnnbench
from rnnbench.analysis.stability import unsettled_cases
from rnnbench.cli.progress import Progress
from rnnbench.domain.result import Limit
from rnnbench.domain.system import PHASES, PRECISIONS
from rnnbench.method import make_method
from rnnbench.plan import Plan
from rnnbench.session import MoreLaunches, begin_run, resume
from rnnbench.store import append, read_folder

#: Frameworks that this machine lacks are left out by naming others with --framework.
SYSTEMS = {
    "pytorch": "fine/eager fine/script fine/cudagraph fine/rnnfuse fine/rnnfuse-cudagraph "
    "cell/eager cell/script cell/cudagraph stack/eager stack/cudagraph",
    "tensorflow": "fine/eager fine/graph fine/graph-while packed/xla "
    "cell/eager cell/graph layer/graph stack/eager stack/graph",
    "keras-tensorflow": "layer/graph layer/graph-dense",
    "keras-jax": "layer/jit",
    "keras-torch": "layer/eager",
    "jax": "fine/jit-scan packed/jit-scan-unroll8 stack/jit",
    "flax": "cell/jit-scan",
    "equinox": "cell/jit-scan",
}
#: What somebody would choose, and the plain loop: for precisions and workloads where the other rows tell nothing new.
CHOSEN = {
    "pytorch": "fine/eager fine/rnnfuse fine/rnnfuse-cudagraph stack/eager stack/cudagraph",
    "tensorflow": "packed/xla stack/graph",
    "keras-tensorflow": "layer/graph-dense",
    "keras-jax": "layer/jit",
    "keras-torch": "layer/eager",
    "jax": "fine/jit-scan stack/jit",
    "flax": "cell/jit-scan",
    "equinox": "cell/jit-scan",
}
GROUPS = [f"{phase}/{precision}" for phase in PHASES for precision in PRECISIONS]
MORE_LAUNCHES = (6, 10)  # where the interval is still wide, or too few were quiet


def plan_group(systems: Sequence[str], workloads: Sequence[str], phase: str, precision: str) -> Plan:
    return rnnbench.make_plan(systems, workloads, phases=[phase], device="cuda", precisions=[precision])


def together(plans: Sequence[Plan]) -> Plan:
    """Groups that are measured in one run: while one program is timed last, others compile."""
    cases = tuple(case for plan in plans for case in plan.cases)
    left_out = tuple(one for plan in plans for one in plan.left_out)
    return msgspec.structs.replace(plans[0], cases=cases, left_out=left_out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("workloads", nargs="*", default=["ptb-lm"])
    parser.add_argument("--groups", nargs="+", default=["train/fp32"], choices=GROUPS)
    parser.add_argument("--framework", nargs="*", default=list(SYSTEMS))
    parser.add_argument("--chosen", action="store_true", help="about half of the rows")
    parser.add_argument("--without", nargs="*", default=[], help="these rows: a loop over 1,000 steps takes 11 s")
    parser.add_argument("--limits", type=Path, help="of the machine: from this run on it, instead of once more")
    given = parser.parse_args()
    with Progress() as progress:
        if not (given.folder / "run.json").exists():
            rows = CHOSEN if given.chosen else SYSTEMS
            systems = [f"{name}/{system}" for name in given.framework for system in rows[name].split()]
            systems = [name for name in systems if name not in given.without]
            plans = [plan_group(systems, given.workloads, *group.split("/")) for group in given.groups]
            # 1.2 seconds of samples at most, five times that set aside: launches differ more than longer samples tell.
            method = make_method(
                launches=3, repeats=2, threads=1, ahead=20, limit_seconds=150, sample_seconds=1.2, warm_seconds=1.0
            )
            plan = together(plans)
            environments = {case.environment for case in plan.cases}
            known = read_folder(given.limits).records if given.limits else ()
            begin_run(plan, method, given.folder, progress, command=("benchmarks/gpu.py", *sys.argv[1:]))
            for record in known:
                if isinstance(record, Limit) and record.environment in environments:
                    append(given.folder, record)
        try:
            contents = resume(given.folder, progress, trust=True)
            for launches in MORE_LAUNCHES:
                if unsettled := unsettled_cases(contents):
                    contents = resume(given.folder, progress, more=MoreLaunches(unsettled, launches), trust=True)
        except KeyboardInterrupt:
            progress.note(f"interrupted: resume with the same command, everything that was done is in {given.folder}")
            sys.exit(130)


if __name__ == "__main__":
    main()
