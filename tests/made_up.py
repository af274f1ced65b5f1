"""Cases, launches and whole runs with made-up numbers, for tests of what comes after measuring."""

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.result import Figure, Launch, Sample, Verification
from rnnbench.domain.run import Environment, Machine, Run, Tool
from rnnbench.domain.system import Manifest, System
from rnnbench.launch.job import ResolvedCase
from rnnbench.store import Contents
from rnnbench.verify.proofs import small_version

WHEN = "2026-01-01T00:00:00+00:00"


def make_case(execution="eager", *, workload="ce-short", phase="train", device="cpu", precision="fp32"):
    return Case(
        workload=workload,
        system=f"toy/fine/{execution}",
        phase=phase,
        device=device,
        precision=precision,
        environment="toy-1.0",
    )


def make_launch(case, *seconds, round=0, batches=1, **fields):
    """A launch whose blocks of `batches` took these seconds each; without seconds, a failed one."""
    samples = tuple(Sample(batches, each) for each in seconds)
    outcome = "ok" if samples else "failed"
    return Launch(**{"case": case, "round": round, "started": WHEN, "outcome": outcome, "samples": samples, **fields})


def make_proof(case, verdict="verified", error=1e-7, **fields):
    """A verification on the small version of the case's workload."""
    small = small_version(parse_workload(case.workload)).name
    figures = (Figure("loss of batch 0", error, 1e-4),)
    fields = {"figures": figures, **fields}
    return Verification(case=msgspec.structs.replace(case, workload=small), verdict=verdict, **fields)


def make_run(cases, *, left_out=(), method=None):
    everything = [*cases, *(left.case for left in left_out)]
    names = {case.system for case in everything}
    return Run(
        created=WHEN,
        command=("made", "up"),
        tool=Tool(version="0"),
        machine=Machine(
            cpu="a processor", cpus=2, cores=2, caches={}, memory_bytes=1, system="a system", kernel="", python="3"
        ),
        method=method or Method(),
        workloads={case.workload: parse_workload(case.workload) for case in everything},
        proved_on={case.workload: small_version(parse_workload(case.workload)).name for case in everything},
        systems={name: make_system(name) for name in sorted(names)},
        environments={"toy-1.0": ENVIRONMENT},
        cases=tuple(cases),
        left_out=tuple(left_out),
    )


def write_framework(folder, executions, code):
    """The folder of a framework with these packed executions, which need only NumPy."""
    folder.mkdir()
    systems = "".join(_SYSTEM.format(execution) for execution in executions)
    (folder / "manifest.toml").write_text(_MANIFEST.format(folder.name, folder.name.title()) + systems)
    (folder / "__init__.py").write_text(code)
    return folder


_MANIFEST = """
framework = "{}"
title = "{}"
package = "numpy"
version = "2"

[[requirements]]
python = ">=3.11"
cpu = ["numpy"]
"""

_SYSTEM = """
[[system]]
granularity = "packed"
execution = "{}"
description = "No network."
"""


def make_system(name="toy/fine/eager", **fields):
    framework, granularity, execution = name.split("/")
    return System(
        framework=framework,
        granularity=granularity,
        execution=execution,
        **{"description": "Nothing that could be run.", **fields},
    )


def make_resolved_case(case=None, **fields):
    """A case of the toy framework with everything it refers to."""
    case = case or make_case()
    return ResolvedCase(
        **{
            "case": case,
            "workload": parse_workload(case.workload),
            "system": make_system(),
            "manifest": MANIFEST,
            "environment": ENVIRONMENT,
            **fields,
        }
    )


def make_contents(cases, *records, **run):
    return Contents(run=make_run(cases, **run), records=tuple(records))


MANIFEST = Manifest(framework="toy", title="Toy", package="toy", version="1.0", requirements=(), system=())

ENVIRONMENT = Environment(
    id="toy-1.0",
    framework="toy",
    version="1.0",
    python="/nowhere/python",
    python_version="3.11.0",
    external=True,
    folder="",
    distributions={},
    fingerprint="",
)
