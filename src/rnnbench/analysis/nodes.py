"""The nodes of a run that was spread over a cluster: whether they are alike, and equally fast."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rnnbench.analysis.differences import machine_changes
from rnnbench.domain.result import Launch, Record
from rnnbench.domain.run import Machine, Run

APART = 0.10  # how much longer the fixed computation may take on one node than on another


def unlike_nodes(run: Run, places: Iterable[tuple[str, str]]) -> str:
    """How two of these places, each a node and a device, differ in what decides a time; "" if they are alike."""
    devices = dict(sorted(places, key=lambda place: place[1]))  # a node with both: its GPU counts too
    first, *others = sorted(devices) or [""]
    for node in others:
        device = "cuda" if "cuda" in (devices[first], devices[node]) else "cpu"
        if changes := node_changes(run.machine_of(first), run.machine_of(node), device):
            return f"{first} → {node}: {', '.join(changes)}"
    return ""


def node_changes(a: Machine, b: Machine, device: str) -> list[str]:
    """Within one run the GPU's driver counts as well."""
    changes = machine_changes(a, b, device)
    drivers = [", ".join(sorted({gpu.driver for gpu in machine.gpus})) for machine in (a, b)]
    if device == "cuda" and drivers[0] != drivers[1]:
        changes.append(f"GPU driver {drivers[0] or 'none'} → {drivers[1] or 'none'}")
    return changes


def timed_places(records: Iterable[Record]) -> set[tuple[str, str]]:
    """Every node that has timed something, with the device. Nodes that only verified do not matter."""
    return {(record.node, record.case.device) for record in records if isinstance(record, Launch)}


def probes_of_nodes(records: Iterable[Record]) -> dict[str, list[float]]:
    """Node -> for each of its launches, oldest first, the time of the fixed computation: the shorter of two."""
    probes: dict[str, list[float]] = {}
    for record in records:
        if isinstance(record, Launch) and record.probe_before_s and record.probe_after_s:
            probes.setdefault(record.node, []).append(min(record.probe_before_s, record.probe_after_s))
    return probes


def slowest_over_fastest(probes: Mapping[str, Sequence[float]]) -> tuple[str, str, float] | None:
    """The node on which the fixed computation takes longest, that on which it is shortest, and the ratio."""
    medians = {node: float(np.median(times)) for node, times in probes.items()}
    if len(medians) < 2:
        return None
    slowest, fastest = (choose(medians, key=lambda node: (medians[node], node)) for choose in (max, min))
    return slowest, fastest, medians[slowest] / medians[fastest]
