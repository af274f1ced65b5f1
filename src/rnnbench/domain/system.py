"""Systems, the manifests that declare them, and versions: what the driver knows without importing a framework."""

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import msgspec
from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from rnnbench.domain.bounds import require_name
from rnnbench.domain.workload import Phase, Workload

Device = Literal["cpu", "cuda"]
Precision = Literal["fp32", "tf32", "bf16"]
GRANULARITIES = ("fine", "packed", "cell", "layer", "stack")
PHASES: tuple[Phase, ...] = ("forward", "train")
DEVICES: tuple[Device, ...] = ("cpu", "cuda")
PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "bf16")
#: Among the cells of a system: any class of a user's, written as a module of PyTorch.
MODULE = "module"


class Processor(msgspec.Struct, frozen=True):
    """The properties of a CPU that decide whether a system can run on it."""

    architecture: str  # `x86_64` or `aarch64`, as the kernel calls it
    features: frozenset[str]  # such as `bf16`, as the kernel lists them


class System(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What computes a workload. Its name is `framework/granularity/execution`."""

    granularity: str
    execution: str
    description: str
    seed: str = ""  # its label in the published tables (Braun 2018, Carrot 2019), if it is in them
    successor: str = ""  # of a historic system: the full name of its current successor
    #: Part of the quick comparison of `make bench`: everywhere, or only on these devices.
    headline: bool | tuple[Device, ...] = False
    biases: Literal[1, 2] = 1  # bias vectors per layer; the reference does the same
    two_biases: tuple[str, ...] = ()  # cells for which there are two where others have one
    uncorrected_epsilon: bool = False  # of Adam: see Manifest; filled in from there
    phases: tuple[Phase, ...] = PHASES
    devices: tuple[Device, ...] = DEVICES
    precisions: tuple[Precision, ...] = PRECISIONS
    cells: tuple[str, ...] = ("lstm",)  # of rnnbench_cells; `*`: all; `module`: a user's class, in PyTorch
    one_step: bool = False  # also implements the single tanh step of Lazarus (2019)
    tools: tuple[str, ...] = ()  # programs that must be on PATH; `g++|clang++` means either
    framework: str = ""  # filled in from the manifest

    @property
    def name(self) -> str:
        return f"{self.framework}/{self.granularity}/{self.execution}"

    def for_cell(self, cell: str) -> "System":
        """The system as it is for one cell."""
        return msgspec.structs.replace(self, biases=2) if cell in self.two_biases else self

    def is_headline(self, device: Device) -> bool:
        return self.headline if isinstance(self.headline, bool) else device in self.headline


class Unsupported(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A declared gap: a combination that meets every condition cannot be run, for this reason."""

    reason: str
    system: str = "*"  # glob on `granularity/execution`
    phase: Phase | None = None
    device: Device | None = None
    precision: Precision | None = None
    loss: str | None = None
    cell: str | None = None
    bidirectional: bool | None = None
    variable_length: bool | None = None
    versions: str | None = None  # requirement on the framework's version, e.g. `<2.0`
    architecture: str | None = None  # of the processor: `x86_64` or `aarch64`
    without_feature: str | None = None  # a feature that the processor lacks, e.g. `bf16`

    def covers(
        self,
        system: System,
        workload: Workload,
        phase: Phase,
        device: Device,
        precision: Precision,
        version: str,
        processor: Processor | None = None,
    ) -> bool:
        """Whether the combination is in this gap. Without a processor: whether it is on every processor."""
        if processor is None and (self.architecture or self.without_feature):
            return False
        conditions = (
            (self.phase, phase),
            (self.device, device),
            (self.precision, precision),
            (self.loss, workload.loss),
            (self.cell, workload.cell),
            (self.bidirectional, workload.bidirectional),
            (self.variable_length, workload.variable_length),
        )
        return (
            fnmatchcase(f"{system.granularity}/{system.execution}", self.system)
            and all(wanted is None or wanted == actual for wanted, actual in conditions)
            and (self.versions is None or satisfies(version, self.versions))
            and (processor is None or self.architecture in (None, processor.architecture))
            and (processor is None or self.without_feature not in processor.features)
        )


class Requirements(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What pip installs for a range of versions of the framework, and into which interpreters."""

    python: str  # requirement on the interpreter, e.g. `>=3.10,<3.14`
    cpu: tuple[str, ...]  # `{version}` is replaced by the framework's version
    cuda: tuple[str, ...] = ()  # empty: the same as cpu
    #: Smaller, for a machine without a GPU: tried first, and `cpu` is installed where pip cannot find them.
    cpu_build: tuple[str, ...] = ()
    versions: str = ""  # the versions of the framework that these are for; empty: all
    constraints: tuple[str, ...] = ()  # pip constraints for the dependencies
    tooling: tuple[str, ...] = ()  # pip, setuptools, wheel to install first, if the venv's are too old
    architectures: tuple[str, ...] = ()  # processors with wheels, e.g. `x86_64`; empty: all


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One framework's folder, as its manifest.toml describes it."""

    framework: str
    title: str
    package: str  # the distribution whose version is the framework's version; `a|b`: whichever is installed
    version: str  # the default version
    requirements: tuple[Requirements, ...]
    system: tuple[System, ...]
    unsupported: tuple[Unsupported, ...] = ()
    uses: tuple[str, ...] = ()  # other code of the worker: "jax" (a folder of systems), "shared/keras" (a module)
    #: Its Adam adds epsilon before the bias correction, so that it is the published one at the first step only, and
    #: smaller later. The reference does the same.
    uncorrected_epsilon: bool = False
    variables: dict[str, str] = {}  # environment variables of the worker; `{scratch}` is its temporary folder
    folder: str = ""  # filled in when read

    def __post_init__(self) -> None:
        # Both name the folder of an environment, which is deleted when it is created again.
        require_name(self.framework, "a framework")
        require_name(self.version, "a version")
        for system in self.system:
            require_name(system.granularity, "a granularity")
            require_name(system.execution, "an execution")

    @property
    def path(self) -> Path:
        return Path(self.folder)

    def requirements_for(self, version: str) -> Requirements | None:
        """The first entry whose range contains this version."""
        for entry in self.requirements:
            if not entry.versions or satisfies(version, entry.versions):
                return entry
        return None


def version_key(version: str) -> Version:
    """A key that sorts versions. For other text, such as `2.11.0-used`, the release at its beginning."""
    try:
        return Version(version)
    except InvalidVersion:
        release = re.match(r"\d+(\.\d+)*", version)
        return Version(release[0] if release else "0")


def satisfies(version: str, requirement: str) -> bool:
    """Whether a version meets `>=3.10,<3.14`. A bare `==3.6` means any 3.6.x."""
    clauses = [_read_clause(clause) for clause in map(str.strip, requirement.split(",")) if clause]
    return SpecifierSet(clauses).contains(version_key(version), prereleases=True)


def _read_clause(clause: str) -> Specifier:
    exact = re.fullmatch(r"[=!]=[^*=]+", clause)
    try:
        return Specifier(f"{clause}.*" if exact else clause)
    except InvalidSpecifier as error:
        raise ValueError(f"cannot read the version requirement '{clause}'") from error
