"""What the published runs on a GPU must give at full size, computed where time does not matter and kept in the cache.

    python benchmarks/expected.py [WORKLOAD …]

Copy the files that it names into the folder `expected` of the other machine's cache (~/.cache/rnnbench): the runs there
find them. A file is named by all that its results depend on, the reference's source too, so a wrong one is not found.
"""

import argparse
import time

from gpu import SYSTEMS
from rnnbench.domain.catalog import CATALOG, parse_workload
from rnnbench.domain.system import PHASES, System
from rnnbench.domain.workload import Phase, Workload
from rnnbench.files import cache_folder
from rnnbench.manifests import manifests
from rnnbench.method import make_method
from rnnbench.verify.expected import expect, variant


def different(phase: Phase) -> list[System]:
    """One of all systems that must compute the same."""
    known = {system.name: system for one in manifests().values() for system in one.system}
    chosen = [known[f"{framework}/{name}"] for framework, names in SYSTEMS.items() for name in names.split()]
    return list({str(variant(system, phase)): system for system in chosen}.values())


def compute(workload: Workload, phase: Phase, system: System) -> None:
    folder, start = cache_folder() / "expected", time.monotonic()
    before = set(folder.glob("*.npz"))
    expect(workload, phase, system, make_method().seed, None, print)
    made = sorted(set(folder.glob("*.npz")) - before)
    size = f"{made[0]}, {made[0].stat().st_size / 1e6:.1f} MB" if made else "it was there"
    print(f"{workload.name}, {phase}, {variant(system, phase)}: {size}, {time.monotonic() - start:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=[name for name, one in CATALOG.items() if not one.one_step])
    for name in parser.parse_args().workloads:
        for phase in PHASES:
            if phase == "forward" and name != "ptb-lm":
                continue  # only its forward pass is published
            for system in different(phase):
                compute(parse_workload(name), phase, system)


if __name__ == "__main__":
    main()
