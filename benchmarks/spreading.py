"""What spreading a run over a cluster costs and brings.

First measured, where Slurm is installed: the same groups in one local run, and as parts on one node of a real Slurm on
this machine. The difference for each part is its start-up: a job, an interpreter, the checks of `resume`. Then
simulated: 1,000 groups over 1 to 100 nodes with that start-up, in Slurm's order, with and without nodes that are lost.
"""

import heapq
import importlib
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent / "tests"
SYSTEM = "sabotage/packed/honest"  # computes next to nothing: what remains is the tool and Slurm
GROUPS = 6
ROUNDS = 3

SIMULATED_GROUPS = 1000
TYPICAL_S, SPREAD_S = 600.0, 0.8  # median of a group's time, and the deviation of its logarithm
PLAN_S = 300.0  # environments and verification, before any part
DETECTION_S = 300.0  # until a lost node is seen: Slurm's default
LOST_AFTER_S = 30 * 24 * 3600.0  # mean time until a node is lost
NODES = (1, 2, 5, 10, 20, 50, 100)


def measure() -> float | None:
    """Seconds that a part costs beyond its launches; None without Slurm."""
    sys.path.insert(0, str(TESTS))
    world: Any = importlib.import_module("slurm_world")
    if missing := world.missing_programs():
        print(f"not measured: Slurm is not installed ({', '.join(missing)})")
        return None
    cluster = world.Cluster()
    folder = Path(tempfile.mkdtemp(prefix="spreading-"))
    source = Path(importlib.import_module("rnnbench").__file__ or "").parent.parent
    variables = {
        **os.environ, **cluster.variables, "XDG_CACHE_HOME": f"{folder}/cache", "XDG_CONFIG_HOME": f"{folder}/config",
        "RNNBENCH_SYSTEMS": str(TESTS / "sabotage"), "PYTHONPATH": str(source),
    }  # fmt: skip

    def seconds(*words: str) -> float:
        start = time.monotonic()
        subprocess.run([sys.executable, "-m", "rnnbench", *words], check=True, capture_output=True, env=variables)
        return time.monotonic() - start

    workloads = [word for size in range(GROUPS) for word in ("-w", f"ce-short[batch={2 + size},hidden=4,steps=4]")]
    case = (SYSTEM, *workloads, "--phase", "forward", "--device", "cpu", "--protocol", "2019", "--effort", "quick")
    try:
        cluster.start()
        seconds("env", "use", "sabotage", sys.executable)
        local, spread, wide = [], [], []
        for number in range(ROUNDS):
            local.append(seconds("run", *case, "--out", f"{folder}/local-{number}"))
            out = f"{folder}/one-{number}"
            spread.append(seconds("run", *case, "--on", "slurm", "--out", out, "--", "--nodelist=n1"))
            wide.append(seconds("run", *case, "--on", "slurm", "--out", f"{folder}/three-{number}"))
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
    here, there, three = (statistics.median(times) for times in (local, spread, wide))
    each = (there - here) / (GROUPS + 1)
    print(f"{GROUPS} groups of one tiny case, medians of {ROUNDS} runs on {os.cpu_count()} processors:")
    print(f"  one local run             {here:6.1f} s")
    print(f"  {GROUPS + 1} parts, one node           {there:6.1f} s: {each:.1f} s for each part")
    print(f"  {GROUPS + 1} parts, three nodes        {three:6.1f} s (the nodes share this machine)")
    return each


def simulate(durations: list[float], nodes: int, start_up_s: float, lost: random.Random | None = None) -> float:
    """Seconds until the last group is complete. Slurm starts the lowest number first, a requeued part as well.

    A lost node's part starts afresh when the loss is seen, and the node is replaced at the same time.
    """
    free = [PLAN_S] * nodes  # when each node is free; a heap
    queue = list(range(len(durations)))  # numbers of parts; a heap
    returning: list[tuple[float, int]] = []  # (when it is queued again, part); a heap
    end = 0.0
    while queue or returning:
        begin = heapq.heappop(free)
        if not queue:
            begin = max(begin, returning[0][0])
        while returning and returning[0][0] <= begin:
            heapq.heappush(queue, heapq.heappop(returning)[1])
        part = heapq.heappop(queue)
        seconds = start_up_s + durations[part]
        if lost and lost.random() < -math.expm1(-seconds / LOST_AFTER_S):
            seen = begin + lost.uniform(0, seconds) + DETECTION_S
            heapq.heappush(returning, (seen, part))
            heapq.heappush(free, seen)
        else:
            end = max(end, begin + seconds)
            heapq.heappush(free, begin + seconds)
    return end


def main() -> None:
    start_up_s = measure()
    if start_up_s is None:
        start_up_s = 5.0
    generator = random.Random(0)
    durations = [generator.lognormvariate(0.0, SPREAD_S) * TYPICAL_S for _ in range(SIMULATED_GROUPS)]
    longest_first = sorted(durations, reverse=True)
    work = sum(durations)
    print(
        f"\nsimulated: {SIMULATED_GROUPS:,} groups of {min(durations) / 60:.0f} to {max(durations) / 60:.0f} minutes, "
        f"{work / 3600:.0f} hours on one machine; {start_up_s:.1f} s for each part, {PLAN_S:.0f} s for the plan;"
        f" a node is lost once in {LOST_AFTER_S / 86400:.0f} days"
    )
    print(f"  {'nodes':>5} {'any order':>10} {'longest first':>14} {'times':>7} {'of ideal':>9} {'with losses':>12}")
    for nodes in NODES:
        any_order, sorted_s = (simulate(each, nodes, start_up_s) for each in (durations, longest_first))
        losses = statistics.mean(simulate(longest_first, nodes, start_up_s, random.Random(seed)) for seed in range(50))
        times = work / sorted_s
        print(
            f"  {nodes:5} {any_order / 3600:8.2f} h {sorted_s / 3600:12.2f} h {times:7.1f} {times / nodes:9.1%}"
            f" {losses / 3600:10.2f} h"
        )


main()
