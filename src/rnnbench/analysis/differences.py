"""What differs between two runs besides the times: what makes cases not comparable, and what is only noted.

A ratio says something about one thing only when everything else is the same. A user who compares versions or
machines has to name that kind of difference.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Literal

import msgspec

from rnnbench.domain.case import Case
from rnnbench.domain.run import Machine, Run

DifferenceKind = Literal["workload", "method", "machine", "environment", "source"]

#: The kinds of differences that a comparison ignores on request. Two workloads are never compared.
CROSSABLE: dict[DifferenceKind, str] = {
    "environment": "versions of the framework, of Python, of any other package",
    "source": "the code of the worker or of the framework's folder",
    "machine": "processor or GPU",
    "method": "protocol, timing, threads, flushing of denormals",
}

_METHOD = ("protocol", "timing", "threads", "flush_denormals")
_MOST_PACKAGES = 4  # that are named; the others are counted


class Difference(msgspec.Struct, frozen=True):
    kind: DifferenceKind
    what: str  # `torch 2.9.1 → 2.13.0`

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


class Differences:
    """Between run A and run B. Results are cached, since a run may have thousands of cases."""

    def __init__(self, a: Run, b: Run) -> None:
        self._a, self._b = a, b
        self._workload: Callable[[str], tuple[Difference, ...]] = lru_cache(None)(self._find_workload)
        self._machine: Callable[[str, str, str], tuple[Difference, ...]] = lru_cache(None)(self._find_machine)
        self._environment: Callable[[str, str], tuple[Difference, ...]] = lru_cache(None)(self._find_environment)
        self._source: Callable[[str, str], tuple[Difference, ...]] = lru_cache(None)(self._find_source)
        self._method = tuple(_named("method", _changes(a.method, b.method, _METHOD)))

    def between(self, a: Case, b: Case, nodes: tuple[str, str] = ("", "")) -> tuple[Difference, ...]:
        """The differences that concern one case, which may be in two environments and on two nodes."""
        return (
            *self._workload(a.workload),
            *self._method,
            *self._machine(a.device, *nodes),
            *self._environment(a.environment, b.environment),
            *self._source(a.framework, a.system),
        )

    def notes(self) -> list[str]:
        """Differences that are worth knowing but do not prevent a comparison."""
        a, b = self._a, self._b
        machine = _changes(a.machine, b.machine, ("system", "kernel"))
        drivers = [", ".join(sorted({gpu.driver for gpu in run.machine.gpus})) for run in (a, b)]
        method = _changes(a.method, b.method, ("effort", "launches", "seed", "cpus", "quiet_cpus"))
        tools = [f"{run.tool.version} {run.tool.revision}".strip() for run in (a, b)]
        return [
            *machine,
            *([f"GPU driver {drivers[0]} → {drivers[1]}"] if all(drivers) and drivers[0] != drivers[1] else []),
            *method,
            *([f"rnnbench {tools[0]} → {tools[1]}"] if tools[0] != tools[1] else []),
        ]

    def _find_workload(self, name: str) -> tuple[Difference, ...]:
        a, b = self._a.workloads[name], self._b.workloads[name]
        fields = [field for field in a.__struct_fields__ if field not in ("name", "origin")]
        changes = list(_changes(a, b, fields))
        if a.vocabulary and bool(self._a.data) != bool(self._b.data):
            texts = ["the Penn Treebank" if run.data else "random ids" for run in (self._a, self._b)]
            changes.append(f"text {texts[0]} → {texts[1]}")
        return tuple(_named("workload", changes))

    def _find_machine(self, device: str, node_a: str, node_b: str) -> tuple[Difference, ...]:
        return tuple(_named("machine", machine_changes(self._a.machine_of(node_a), self._b.machine_of(node_b), device)))

    def _find_environment(self, first: str, second: str) -> tuple[Difference, ...]:
        """Only what is installed counts: the same versions on another machine are the same environment."""
        a, b = self._a.environments[first], self._b.environments[second]
        versions = a.version, b.version
        changes = list(_changes(a, b, ("python_version",)))
        if versions[0] != versions[1]:  # the framework itself comes first
            changes.insert(0, f"{a.framework} {versions[0]} → {versions[1]}")
        packages: list[str] = []
        for name in sorted(set(a.distributions) | set(b.distributions)):
            before, after = a.distributions.get(name, "absent"), b.distributions.get(name, "absent")
            if before != after and (before, after) != versions:  # the framework's own package is listed already
                packages.append(f"{name} {before} → {after}")
        changes += packages[:_MOST_PACKAGES]
        if len(packages) > _MOST_PACKAGES:
            changes.append(f"{len(packages) - _MOST_PACKAGES} more packages")
        return tuple(_named("environment", changes))

    def _find_source(self, framework: str, system: str) -> tuple[Difference, ...]:
        a, b = self._a.tool, self._b.tool
        hashes = a.sources.get(framework), b.sources.get(framework)
        if None in hashes:  # an old run, which has one hash for all frameworks
            hashes = a.worker, b.worker
        changes = list(_changes(self._a.systems[system], self._b.systems[system], ("biases",)))
        if hashes[0] != hashes[1]:
            changes.append(f"code {hashes[0] or 'unknown'} → {hashes[1] or 'unknown'}")
        return tuple(_named("source", changes))


def machine_changes(a: Machine, b: Machine, device: str) -> list[str]:
    """What makes two machines unlike for the rows of a device."""
    changes = list(_changes(a, b, ("cpu", "cpus", "cores", "caches")))
    if device == "cuda" and _gpus(a) != _gpus(b):
        changes.append(f"GPU {_gpus(a)} → {_gpus(b)}")
    return changes


def _named(kind: DifferenceKind, changes: Iterable[str]) -> Iterator[Difference]:
    return (Difference(kind, what) for what in changes)


def _changes(a: msgspec.Struct, b: msgspec.Struct, fields: list[str] | tuple[str, ...]) -> Iterator[str]:
    for field in fields:
        before, after = getattr(a, field), getattr(b, field)
        if before != after:
            yield f"{field.replace('_', ' ')} {_shown(before)} → {_shown(after)}"


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={inner}" for name, inner in value.items()) or "none"
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return str(value)


def _gpus(machine: Machine) -> str:
    return ", ".join(gpu.name for gpu in machine.gpus) or "none"
