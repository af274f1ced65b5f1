"""Writes a run folder of any size with made-up numbers, only for timing the tool."""

from pathlib import Path

import msgspec
import numpy as np

from rnnbench.domain.case import Case
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.result import Figure, Launch, Sample, Verification
from rnnbench.domain.run import Environment, Run
from rnnbench.machine import describe_machine
from rnnbench.manifests import describe_tool, manifests
from rnnbench.method import make_method
from rnnbench.store import RECORDS_FILE, create_folder
from rnnbench.verify.proofs import small_version


def write_run(folder: Path, cases: int, launches: int, samples: int, seed: int = 0) -> None:
    """Cases differ in batch size, so that each system and phase has many workloads."""
    systems = {system.name: system for system in manifests()["pytorch"].system}
    environment = Environment(
        id="pytorch-0", framework="pytorch", version="0", python="", python_version="3", external=True, folder="",
        distributions={}, fingerprint="",
    )  # fmt: skip
    per_workload = 2 * len(systems)
    workloads = {}
    planned: list[Case] = []
    while len(planned) < cases:
        workload = parse_workload(f"ce-short[batch={1 + len(planned) // per_workload}]")
        workloads[workload.name] = workload
        planned += [
            Case(
                workload=workload.name, system=name, phase=phase, device="cpu", precision="fp32",
                environment=environment.id,
            )
            for name in systems
            for phase in ("forward", "train")
        ]  # fmt: skip
    planned = planned[:cases]
    run = Run(
        created="2026-01-01T00:00:00+00:00", command=("synthetic",), tool=describe_tool(), machine=describe_machine(),
        method=make_method(launches=launches), workloads=workloads, systems=systems,
        proved_on={name: small_version(workload).name for name, workload in workloads.items()},
        environments={environment.id: environment}, cases=tuple(planned),
    )  # fmt: skip
    create_folder(folder, run)
    generator = np.random.default_rng(seed)
    encode = msgspec.json.Encoder().encode
    with (folder / RECORDS_FILE).open("wb") as file:
        for case in planned:
            small = small_version(workloads[case.workload]).name
            proof = msgspec.structs.replace(case, workload=small)
            figures = (Figure("loss of batch 0", 1e-7, 1e-4),)
            file.write(encode(Verification(case=proof, verdict="verified", figures=figures)) + b"\n")
            mean = generator.uniform(0.01, 1.0)
            for number in range(launches):
                times = generator.normal(mean, 0.02 * mean, samples)
                launch = Launch(
                    case=case, round=number, started="2026-01-01T00:00:00+00:00", outcome="ok",
                    samples=tuple(Sample(2, 2 * abs(float(seconds))) for seconds in times),
                    first_call_s=2 * mean, warm_seconds=1.0, peak_host_bytes=10**9,
                )  # fmt: skip
                file.write(encode(launch) + b"\n")
