"""A run's GPUs in words: what they are, and how they were when rows were sampled."""

from collections.abc import Iterable

from rnnbench.domain.result import GpuState, Launch
from rnnbench.store.folder import Contents


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
