"""From a selection to ordered cases, with a reason for each combination that is left out.

First `find_targets` inspects the machine. Then `cross` only combines: it starts no interpreter.
"""

import shutil
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import product
from typing import NamedTuple

import msgspec

from rnnbench.domain.case import Case, LeftOut, Method
from rnnbench.domain.catalog import CATALOG, parse_workload
from rnnbench.domain.run import Environment
from rnnbench.domain.system import MODULE, PHASES, Device, Manifest, Precision, System
from rnnbench.domain.workload import Phase, Workload, least_memory
from rnnbench.environments.interpreters import no_interpreter
from rnnbench.environments.registry import find
from rnnbench.environments.spec import EnvironmentSpec, no_wheels, parse_spec
from rnnbench.errors import UserError, nearest
from rnnbench.machine import find_gpus, this_processor, total_memory
from rnnbench.manifests import manifests
from rnnbench.units import size

#: Why a row has no other cell than those that its manifest names.
_WITHOUT_CELL = {
    "fine": "only the LSTM is written out gate by gate; packed runs {cell} as its file says",
    "packed": "this execution has no {cell}",
    "cell": "the framework's cell that it calls does not compute {cell}",
    "layer": "the framework's layer that it calls does not compute {cell}",
    "stack": "the vendor's kernel that it calls does not compute {cell}",
}


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What a user selects. Empty workloads or systems mean all of them."""

    systems: tuple[str, ...] = ()  # globs on the system's name
    workloads: tuple[Workload, ...] = ()
    phases: tuple[Phase, ...] = PHASES
    device: str = "auto"
    precisions: tuple[Precision, ...] = ("fp32",)
    versions: tuple[str, ...] = ()  # `2.13.0`, or `pytorch==2.13.0` for that framework only; empty: the manifests'
    headline: bool = False  # only the systems of the quick comparison


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What will be run, what will not and why, and everything that both refer to."""

    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...]
    workloads: dict[str, Workload]
    systems: dict[str, System]
    specs: dict[str, EnvironmentSpec]  # by environment id
    given: dict[str, Environment] = {}  # by id, those that exist and were named for this plan alone


class Target(NamedTuple):
    """An environment that would run a framework's cases, whether it already exists or must be created."""

    environment: str
    version: str
    obstacle: str  # why it cannot be created; empty if it exists or can be created


def make_plan(selection: Selection, given: Mapping[str, Environment] | None = None) -> Plan:
    """Find out what this machine has, then combine the selection with it. `given`: environments, by framework."""
    device = pick_device(selection.device)
    systems = select_systems(selection.systems, device if selection.headline else None)
    named = given or {}
    targets, specs = find_targets([one for one in systems if one.framework not in named], selection.versions, device)
    targets |= {framework: [Target(one.id, one.version, "")] for framework, one in named.items()}
    workloads = selection.workloads or _default_workloads(selection.headline, device)
    cases, left_out = cross(systems, workloads, selection.phases, device, selection.precisions, targets)
    return Plan(
        cases=tuple(dict.fromkeys(cases)),
        left_out=tuple(dict.fromkeys(left_out)),
        workloads={workload.name: workload for workload in workloads},
        systems={system.name: system for system in systems},
        specs=specs,
        given={one.id: one for one in named.values()},
    )


def count_groups(selection: Selection) -> int:
    """How many comparison groups a selection has, on any machine. In some there may be no case that can be run."""
    workloads = selection.workloads or _default_workloads(selection.headline, "cpu")
    return len(workloads) * len(selection.phases) * len(selection.precisions)


def join_plans(first: Plan, *others: Plan) -> Plan:
    """Several plans as one run: what they share is run once, and their launches are shuffled together."""
    cases, left_out = list(first.cases), list(first.left_out)
    workloads, systems, specs = dict(first.workloads), dict(first.systems), dict(first.specs)
    given = dict(first.given)
    for plan in others:
        cases += [case for case in plan.cases if case not in cases]
        left_out += [one for one in plan.left_out if one not in left_out]
        workloads |= plan.workloads
        systems |= plan.systems
        specs |= plan.specs
        given |= plan.given
    return Plan(
        cases=tuple(cases),
        left_out=tuple(left_out),
        workloads=workloads,
        systems=systems,
        specs=specs,
        given=given,
    )


def within_memory(plan: Plan, method: Method) -> Plan:
    """The plan without cases that this machine cannot hold, whatever computes them; the reason says the bytes."""
    kept: list[Case] = []
    left_out = list(plan.left_out)
    room = {device: _memory_of(device, method) for device in {case.device for case in plan.cases}}
    for case in plan.cases:
        needed = least_memory(plan.workloads[case.workload], case.phase, case.precision)
        if 0 < room[case.device] < needed:
            reason = f"it needs at least {size(needed)} of memory, and there are {size(room[case.device])}"
            left_out.append(LeftOut(case=case, reason=reason))
        else:
            kept.append(case)
    return msgspec.structs.replace(plan, cases=tuple(kept), left_out=tuple(left_out))


def _memory_of(device: Device, method: Method) -> int:
    """In bytes; 0: not known. A worker on a CPU may also have been given less than the machine has."""
    if device == "cuda":
        return max((gpu.memory_mib for gpu in find_gpus()), default=0) * 2**20
    return method.memory_bytes or total_memory()


def select_systems(patterns: tuple[str, ...], headline_on: Device | None = None) -> list[System]:
    """The systems whose names match any of the patterns, in the manifests' order; or the headline ones of a device."""
    everything = [system for manifest in manifests().values() for system in manifest.system]
    for pattern in patterns:
        if not any(fnmatchcase(system.name, pattern) for system in everything):
            names = [system.name for system in everything]
            raise UserError(f"no system matches '{pattern}'", nearest(pattern, names))
    selected = [
        system
        for system in everything
        if (not patterns or any(fnmatchcase(system.name, pattern) for pattern in patterns))
        and (headline_on is None or system.is_headline(headline_on))
    ]
    if not selected:
        raise UserError(
            "none of the selected systems is a headline system", "choose others, or all systems instead of the headline"
        )
    return selected


def require_device(wanted: str) -> None:
    if wanted not in ("auto", "cpu", "cuda"):
        raise UserError(f"'{wanted}' is not a device", "allowed: cpu, cuda, auto")


def pick_device(wanted: str) -> Device:
    """The device to use; `auto` means the GPU if there is one."""
    require_device(wanted)
    if wanted == "cpu":
        return "cpu"
    gpus = find_gpus()
    if wanted == "cuda" and not gpus:
        raise UserError("no CUDA device was found: nvidia-smi is missing or lists none", "choose the device cpu")
    return "cuda" if gpus else "cpu"


#: The quick comparison. On a CPU the full language model takes minutes, so there it is a smaller one.
HEADLINE_WORKLOADS: dict[Device, tuple[str, ...]] = {
    "cpu": ("ce-short", "ptb-lm[batch=32,steps=10]"),
    "cuda": ("ce-short", "ptb-lm"),
}


def _default_workloads(headline: bool, device: Device) -> tuple[Workload, ...]:
    if not headline:
        return tuple(workload for workload in CATALOG.values() if not workload.one_step)
    return tuple(parse_workload(name) for name in HEADLINE_WORKLOADS[device])


def find_targets(
    systems: Sequence[System], versions: tuple[str, ...], device: Device
) -> tuple[dict[str, list[Target]], dict[str, EnvironmentSpec]]:
    """For each framework its targets; and the specs of these environments by their ids.

    Inspecting an environment starts an interpreter: that happens once per environment, not once per case.
    """
    targets: dict[str, list[Target]] = {system.framework: [] for system in systems}
    specs: dict[str, EnvironmentSpec] = {}
    _require_selected(versions, targets)
    for framework, found in targets.items():
        for spec in _selected_specs(manifests()[framework], versions, device):
            environment = find(spec)
            identifier = environment.id if environment else spec.id
            if identifier not in specs:  # two spellings of a version are one environment
                specs[identifier] = spec
                version = environment.version if environment else spec.version
                obstacle = "" if environment else no_wheels(spec.architectures) or no_interpreter(spec.python)
                found.append(Target(identifier, version, obstacle))
    return targets, specs


def _require_selected(versions: tuple[str, ...], frameworks: Collection[str]) -> None:
    for text in versions:
        framework, _ = _split_version(text)
        if framework and framework not in frameworks:
            raise UserError(
                f"'{text}' is for {framework}, but none of its systems is selected",
                f"selected: {', '.join(frameworks)}",
            )


def _selected_specs(manifest: Manifest, versions: tuple[str, ...], device: Device) -> list[EnvironmentSpec]:
    """The specs of the versions selected for this framework or for all; without any, of its default version."""
    pairs = [_split_version(text) for text in versions]
    wanted = [version for framework, version in pairs if framework in ("", manifest.framework)]
    names = [f"{manifest.framework}=={version}" for version in wanted] or [manifest.framework]
    return [parse_spec(name, device) for name in names]


def _split_version(text: str) -> tuple[str, str]:
    """Framework and version: `1.0.0` is for every selected framework (`""`), `pytorch==1.0.0` for PyTorch only."""
    framework, _, version = text.rpartition("==")
    return framework.strip(), version.strip()


def cross(
    systems: Sequence[System],
    workloads: Sequence[Workload],
    phases: Sequence[Phase],
    device: Device,
    precisions: Sequence[Precision],
    targets: Mapping[str, Sequence[Target]],
) -> tuple[list[Case], list[LeftOut]]:
    """All combinations, in order: those that can be run, and those that cannot, with the reason."""
    cases: list[Case] = []
    left_out: list[LeftOut] = []
    for workload, system in product(workloads, systems):
        for target, phase, precision in product(targets[system.framework], phases, precisions):
            case = Case(
                workload=workload.name,
                system=system.name,
                phase=phase,
                device=device,
                precision=precision,
                environment=target.environment,
            )
            manifest = manifests()[system.framework]
            reason = why_not(manifest, system, workload, phase, device, precision, target.version) or target.obstacle
            if reason:
                left_out.append(LeftOut(case=case, reason=reason))
            else:
                cases.append(case)
    return cases, left_out


def why_not(
    manifest: Manifest,
    system: System,
    workload: Workload,
    phase: Phase,
    device: Device,
    precision: Precision,
    version: str,
) -> str:
    """Why a combination cannot be run here; empty if it can."""
    for gap in manifest.unsupported:
        if gap.covers(system, workload, phase, device, precision, version, this_processor()):
            return gap.reason
    offers: tuple[tuple[str, tuple[str, ...], str], ...] = (
        (phase, system.phases, "phase"),
        (device, system.devices, "device"),
        (precision, system.precisions, "precision"),
    )
    for wanted, offered, what in offers:
        if wanted not in offered:
            return f"the system offers only {what} {', '.join(offered)}"
    if workload.own_class is not None and MODULE not in system.cells:
        return "it runs no module of PyTorch"
    if workload.own_class is None and workload.cell not in system.cells and "*" not in system.cells:
        return _WITHOUT_CELL[system.granularity].format(cell=workload.cell)
    if workload.one_step and not system.one_step:
        return "the single step only shows graphs: this system does not implement it"
    for tool in system.tools:
        if not any(shutil.which(name) for name in tool.split("|")):
            return f"none of {tool.replace('|', ', ')} is on PATH"
    return ""
