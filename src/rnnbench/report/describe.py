"""A run in words: its GPUs, how it was measured, and the command that measures one row again."""

import shlex
from collections.abc import Iterable

from rnnbench.analysis.row import Row
from rnnbench.domain.case import EFFORTS, Method
from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.result import GpuState, Launch
from rnnbench.domain.run import Run
from rnnbench.store import Contents


def describe_gpus(contents: Contents) -> list[str]:
    """One line each. Rows run on the first: its clocks and temperatures before and after the samples go with it."""
    lines = [
        f"{gpu.name}, driver {gpu.driver}" + (f", {gpu.memory_mib:,} MiB" if gpu.memory_mib else "")
        for gpu in contents.run.machine.gpus
    ]
    launches = [record for record in contents.records if isinstance(record, Launch)]
    states = [state for launch in launches for state in (launch.gpu_before, launch.gpu_after) if state]
    if lines and states:
        lines[0] += f"; when sampled {_describe(states)}"
    return lines


def _describe(states: list[GpuState]) -> str:
    words = [
        _span((state.sm_mhz for state in states), "MHz"),
        _span((state.memory_mhz for state in states), "MHz memory"),
        _span((state.temperature_c for state in states), "°C"),
        _span((state.power_w for state in states), "W"),
        ", ".join(sorted({f"P{state.performance_state}" for state in states if state.performance_state is not None})),
    ]
    slowed = sorted({reason for state in states for reason in state.slowed_by})
    return ", ".join(filter(None, words)) + (f", slowed by {' and '.join(slowed)}" if slowed else "")


def _span(values: Iterable[float | None], unit: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = (f"{value:,.0f}" for value in (min(known), max(known)))
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def describe_method(contents: Contents) -> str:
    method = contents.run.method
    launches = f"{method.launches} launch{'' if method.launches == 1 else 'es'} a case"
    threads = f"{method.threads} thread{'' if method.threads == 1 else 's'}"
    return f"{method.protocol} protocol, {method.timing}, {launches}, {threads}{_crowd(contents)}"


def _crowd(contents: Contents) -> str:
    """What a reader of first calls must know. Asked of the launches: a run may be gone on with in another way."""
    most = max((record.concurrent_workers for record in contents.records if isinstance(record, Launch)), default=0)
    return f", up to {most + 1} workers at once: first call and warm-up too long" if most else ""


def command_for_row(run: Run, row: Row) -> str:
    """The same case, measured in the same way; what a run does by itself is not said."""
    words = ["rnnbench", "run", row.system, "-w", row.workload]
    if run.workloads[row.workload].id not in CATALOG:
        words += ["--workloads-from", "FILE.toml"]  # the user's own, which a run does not keep
    words += ["--phase", row.phase, "--device", row.device, "--precision", row.precision]
    words += _version(run, row)
    words += _method(run.method)
    if run.data and run.workloads[row.workload].vocabulary:
        words += ["--data", "FOLDER"]
    return shlex.join(words)


def _version(run: Run, row: Row) -> list[str]:
    """A used environment is found by `env use`, not by its version."""
    environment = run.environments.get(row.environment)
    if environment is None or environment.external:
        return []
    return ["--versions", row.environment.removeprefix(f"{row.framework}-").removesuffix("-cuda")]


def _method(method: Method) -> list[str]:
    effort, usual = EFFORTS[method.effort], Method()
    options = (
        ("--effort", method.effort, usual.effort),
        ("--protocol", method.protocol, usual.protocol),
        ("--timing", method.timing, usual.timing),
        ("--launches", method.launches, effort.launches),
        ("--limit", f"{method.limit_seconds:g}", f"{usual.limit_seconds:g}"),
        ("--threads", method.threads, None),
        ("--seed", method.seed, usual.seed),
    )
    words = [word for name, value, plain in options if value != plain for word in (name, str(value))]
    return words if method.verify else [*words, "--no-verify"]
