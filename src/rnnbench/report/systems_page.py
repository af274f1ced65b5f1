"""docs/systems.md: every system and what it supports, written from the manifests alone."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.system import Device, Manifest, Precision, System, Unsupported
from rnnbench.domain.workload import Phase

_HEAD = """\
# Systems

{systems} systems of {frameworks} frameworks, named `framework/granularity/execution`. Written from the manifests by
`rnnbench systems --markdown > docs/systems.md`; a test checks it. `rnnbench systems --json` has the same for programs.

- **Bold** systems are the quick comparison of `make bench`, some of them on one device only.
- *Published as* is the label in the published tables (Braun 2018, Carrot 2019).
- A section says what its rows support, and a row what it has besides or instead. Below is what is impossible and why;
  in a run these rows are `unsupported`. TF32 is a mode of NVIDIA's tensor cores: no CPU has it.

| framework | package | systems | granularities |
|---|---|---:|---|
"""

_TABLE = """\
| system | what it is | supports |
|---|---|---|
"""


def systems_page(systems: Sequence[System], manifests: Mapping[str, Manifest]) -> str:
    """The page for these systems, with a section for each framework."""
    groups: dict[str, list[System]] = {}
    for system in systems:
        groups.setdefault(system.framework, []).append(system)
    overview = "".join(_overview(manifests[framework], group) for framework, group in groups.items())
    sections = (_section(manifests[framework], group) for framework, group in groups.items())
    return "\n".join([_HEAD.format(systems=len(systems), frameworks=len(groups)) + overview, *sections])


def _overview(manifest: Manifest, systems: Sequence[System]) -> str:
    granularities = ", ".join(dict.fromkeys(system.granularity for system in systems))
    link = f"[{manifest.title}](#{_anchor(manifest.title)})"
    return _row(link, f"{_packages(manifest)} {manifest.version}", str(len(systems)), granularities)


def _section(manifest: Manifest, systems: Sequence[System]) -> str:
    supported = [_supports(manifest, system) for system in systems]
    usual = Counter(supported).most_common(1)[0][0]
    rows = "".join(
        _row(
            f"**`{system.name}`**" if system.headline else f"`{system.name}`",
            system.description + _label(system),
            "; ".join(([] if supports == usual else [supports]) + _besides(system)),
        )
        for system, supports in zip(systems, supported, strict=True)
    )
    gaps = _gaps(gap for gap in manifest.unsupported if any(_concerns(gap, system) for system in systems))
    head = f"## {manifest.title}\n\n{_environment(manifest)} Supports {usual}.\n"
    return "\n".join([head, _TABLE + rows] + ([gaps] if gaps else []))


def _environment(manifest: Manifest) -> str:
    """What its environment contains: the default version, then the ranges of other versions."""
    entry = manifest.requirements_for(manifest.version)
    assert entry is not None, f"{manifest.framework} has no requirements for its own version"
    only = f" on {' and '.join(entry.architectures)}" if entry.architectures else ""
    others = [line for line in entry.cuda if line not in entry.cpu]
    cuda = f", with CUDA {_code(others, manifest.version)}" if others else ""
    ranges = [
        (f"`{other.versions}`" if other.versions else "any")
        + (f" ({', '.join(other.architectures)} only)" if other.architectures else "")
        for other in manifest.requirements
        if other is not entry
    ]
    versions = f" Other versions: {' or '.join(ranges)}." if ranges else ""
    python = entry.python.replace(",", ", ")
    return f"Python {python}{only}; installs {_code(entry.cpu, manifest.version)}{cuda}.{versions}"


def _code(lines: Iterable[str], version: str) -> str:
    return ", ".join(f"`{line.replace('{version}', version)}`" for line in lines)


def _label(system: System) -> str:
    """Its label in the published tables; a manifest says `none: …` where there is none."""
    return "" if not system.seed or system.seed.startswith("none") else f" Published as {system.seed}."


def _supports(manifest: Manifest, system: System) -> str:
    """Phases with their devices and precisions, `forward, train · cpu: fp32, bf16`; equal phases are joined."""
    phases: dict[str, list[Phase]] = {}
    for phase in system.phases:
        places = [
            f"{device}: {', '.join(precisions)}"
            for device in system.devices
            if (precisions := _precisions(manifest, system, phase, device))
        ]
        phases.setdefault(" · ".join(places), []).append(phase)
    return "; ".join(f"{', '.join(names)} · {places}" for places, names in phases.items() if places)


def _besides(system: System) -> list[str]:
    """What a system has or needs beside its phases, devices and precisions."""
    cells = [] if system.cells == ("lstm",) else [f"cells: {', '.join(system.cells)}"]
    cells = ["every cell"] if "*" in system.cells else cells
    tools = [f"needs {tool.replace('|', ' or ')}" for tool in system.tools]
    return cells + tools + (["also `elman-step`"] if system.one_step else [])


def offered_devices(manifest: Manifest, system: System) -> list[Device]:
    """The devices on which the system can run anything at all: its manifest may exclude one for a reason."""
    return [
        device
        for device in system.devices
        if any(_precisions(manifest, system, phase, device) for phase in system.phases)
    ]


def _precisions(manifest: Manifest, system: System, phase: Phase, device: Device) -> list[Precision]:
    """The precisions in which at least one workload of the catalogue can be run."""

    def possible(precision: Precision) -> bool:
        return any(
            not any(
                gap.covers(system, workload, phase, device, precision, manifest.version) for gap in manifest.unsupported
            )
            for workload in CATALOG.values()
            if not workload.one_step
        )

    return [precision for precision in system.precisions if possible(precision)]


def _concerns(gap: Unsupported, system: System) -> bool:
    return fnmatchcase(f"{system.granularity}/{system.execution}", gap.system)


def _gaps(gaps: Iterable[Unsupported]) -> str:
    """What is impossible and why, a line for each reason. The head of the page speaks of TF32 on a CPU for all."""
    systems: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for gap in gaps:
        if (gap.system, *_conditions(gap)) != ("*", "on cpu", "in tf32"):
            systems.setdefault((_conditions(gap), gap.reason), []).append(gap.system)
    return "".join(
        f"- {', '.join([*map(_glob, named), *conditions])}: {reason}.\n"
        for (conditions, reason), named in systems.items()
    )


def _glob(system: str) -> str:
    return "all" if system == "*" else f"`{system}`"


def _conditions(gap: Unsupported) -> tuple[str, ...]:
    """The conditions under which something is unsupported, in words."""
    words: list[str] = [gap.phase] if gap.phase else []
    words += [f"on {gap.device}"] if gap.device else []
    words += [f"in {gap.precision}"] if gap.precision else []
    words += [f"with the loss {gap.loss}"] if gap.loss else []
    if gap.bidirectional is not None:
        words.append("in two directions" if gap.bidirectional else "in one direction")
    if gap.variable_length is not None:
        words.append("with sequences of different lengths" if gap.variable_length else "with sequences of one length")
    words += [f"in versions {gap.versions}"] if gap.versions else []
    words += [f"on {gap.architecture}"] if gap.architecture else []
    words += [f"without {gap.without_feature}"] if gap.without_feature else []
    return tuple(words)


def _packages(manifest: Manifest) -> str:
    return " or ".join(f"`{name}`" for name in manifest.package.split("|"))


def _anchor(title: str) -> str:
    """The anchor that Markdown hosts give to a heading."""
    kept = (character for character in title.lower() if character.isalnum() or character in " -_")
    return "".join(kept).replace(" ", "-")


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
