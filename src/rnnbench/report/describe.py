"""A run in words: its GPUs, its method, and the command that measures one of its rows again."""

import shlex
from collections.abc import Iterable

from rnnbench.analysis.row import Row
from rnnbench.domain.case import EFFORTS, Method
from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.result import GpuState, Launch
from rnnbench.domain.run import Run
from rnnbench.store import Contents


def describe_gpus(contents: Contents) -> list[str]:
    """One line each. The first, which ran the rows, has its clocks and temperatures before and after sampling."""
    lines = [
        f"{gpu.name}, driver {gpu.driver}" + (f", {gpu.memory_mib:,} MiB" if gpu.memory_mib else "")
        for gpu in contents.run.machine.gpus
    ]
    launches = [record for record in contents.records if isinstance(record, Launch)]
    states = [state for launch in launches for state in (launch.gpu_before, launch.gpu_after) if state]
    if lines and states:
        lines[0] += f"; when sampled {_describe_states(states)}"
    return lines


def describe_nodes(contents: Contents) -> list[str]:
    """Of a run that was spread over a cluster, one line for each node that has timed something."""
    timed = {record.node for record in contents.records if isinstance(record, Launch)}
    return [
        ", ".join((f"{node}: {machine.cpu}", f"{machine.cores} cores", *(gpu.name for gpu in machine.gpus)))
        for node, machine in contents.run.machines.items()
        if node in timed
    ]


def _describe_states(states: list[GpuState]) -> str:
    words = [
        _value_range((state.sm_mhz for state in states), "MHz"),
        _value_range((state.memory_mhz for state in states), "MHz memory"),
        _value_range((state.temperature_c for state in states), "°C"),
        _value_range((state.power_w for state in states), "W"),
        ", ".join(sorted({f"P{state.performance_state}" for state in states if state.performance_state is not None})),
    ]
    slowed = sorted({reason for state in states for reason in state.slowed_by})
    return ", ".join(filter(None, words)) + (f", slowed by {' and '.join(slowed)}" if slowed else "")


def _value_range(values: Iterable[float | None], unit: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low, high = (f"{value:,.0f}" for value in (min(known), max(known)))
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def describe_method(contents: Contents) -> str:
    method = contents.run.method
    launches = f"{method.launches} launch{'' if method.launches == 1 else 'es'} a case"
    threads = f"{method.threads} thread{'' if method.threads == 1 else 's'}"
    return f"{method.protocol} protocol, {method.timing}, {launches}, {threads}{_concurrency(contents)}"


def _concurrency(contents: Contents) -> str:
    """From the launches, since a run may be resumed with another number of workers."""
    most = max((record.concurrent_workers for record in contents.records if isinstance(record, Launch)), default=0)
    return f", up to {most + 1} workers at once, which makes first calls and warm-ups longer" if most else ""


def command_for_row(run: Run, row: Row) -> str:
    """The same case with the same method; options at their defaults are left out."""
    words = ["rnnbench", "run", row.system, "-w", row.workload]
    if run.workloads[row.workload].id not in CATALOG:
        words += ["--workloads-from", "FILE.toml"]  # a run does not keep the user's file
    words += ["--phase", row.phase, "--device", row.device, "--precision", row.precision]
    words += _version_option(run, row)
    words += _method_options(run.method)
    if run.data and run.workloads[row.workload].vocabulary:
        words += ["--data", "FOLDER"]
    return shlex.join(words)


def _version_option(run: Run, row: Row) -> list[str]:
    """None for an external environment, which is chosen by `env use`."""
    environment = run.environments.get(row.environment)
    if environment is None or environment.external:
        return []
    return ["--versions", row.environment.removeprefix(f"{row.framework}-").removesuffix("-cuda")]


def _method_options(method: Method) -> list[str]:
    effort, default = EFFORTS[method.effort], Method()
    options = (
        ("--effort", method.effort, default.effort),
        ("--protocol", method.protocol, default.protocol),
        ("--timing", method.timing, default.timing),
        ("--launches", method.launches, effort.launches),
        ("--limit", f"{method.limit_seconds:g}", f"{default.limit_seconds:g}"),
        ("--threads", method.threads, None),
        ("--seed", method.seed, default.seed),
    )
    words = [word for name, value, usual in options if value != usual for word in (name, str(value))]
    return words if method.verify else [*words, "--no-verify"]
