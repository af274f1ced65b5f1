"""What an environment must contain: a framework's manifest, read for one version and one device."""

import re
from collections.abc import Sequence

import msgspec
from packaging.version import InvalidVersion, Version

from rnnbench.domain.system import DEVICES, Device, Manifest, Requirements, version_key
from rnnbench.errors import UserError, nearest
from rnnbench.machine import find_gpus, this_processor
from rnnbench.manifests import manifests

_SPEC_PATTERN = re.compile(r"(?P<framework>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:==\s*(?P<version>\S+))?")


class EnvironmentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `create` needs to know."""

    framework: str
    version: str
    variant: Device  # `cpu` also where the manifest has no separate requirements for CUDA
    python: str  # requirement on the interpreter, e.g. `>=3.10,<3.14`
    requirements: tuple[str, ...]
    preferred: tuple[str, ...] = ()  # tried before `requirements`, which are installed where pip cannot find these
    constraints: tuple[str, ...] = ()
    tooling: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()  # processors with wheels; empty: all

    @property
    def id(self) -> str:
        return f"{self.framework}-{self.version}" + ("-cuda" if self.variant == "cuda" else "")


def no_wheels(architectures: Sequence[str]) -> str:
    """Why wheels for these processors cannot be installed here; empty if they can. None named means all."""
    here = this_processor().architecture
    if not architectures or here in architectures:
        return ""
    return f"no wheels: this version is offered for {', '.join(architectures)} only, and this machine is {here}"


def parse_spec(text: str, device: str = "cpu") -> EnvironmentSpec:
    """From `pytorch` or `pytorch==2.9.1`; without a version, the manifest's default."""
    if device not in DEVICES:
        raise UserError(f"'{device}' is not a device", f"allowed: {', '.join(DEVICES)}")
    manifest, asked = split_spec(text)
    # Another spelling of the default version means the same environment, not a second one.
    version = asked if asked and not same_version(manifest.version, asked) else manifest.version
    entry = manifest.requirements_for(version)
    if entry is None:
        ranges = "; ".join(one.versions for one in manifest.requirements)
        raise UserError(
            f"the requirements of {manifest.title} {version} are unknown", f"its manifest covers versions {ranges}"
        )
    cuda = device == "cuda" and bool(entry.cuda)

    def fill_in(lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(line.replace("{version}", version) for line in lines)

    return EnvironmentSpec(
        framework=manifest.framework,
        version=version,
        variant="cuda" if cuda else "cpu",
        python=entry.python,
        requirements=fill_in(entry.cuda if cuda else entry.cpu),
        preferred=fill_in(entry.cpu_build) if _wants_cpu_build(entry, version, cuda) else (),
        constraints=fill_in(entry.constraints),
        tooling=fill_in(entry.tooling),
        architectures=entry.architectures,
    )


def _wants_cpu_build(entry: Requirements, version: str, cuda: bool) -> bool:
    """Where no GPU would use the larger one; a version such as `2.9.1+cu126` has already chosen its build."""
    return bool(entry.cpu_build) and not cuda and "+" not in version and not find_gpus()


def split_spec(text: str) -> tuple[Manifest, str]:
    """The framework's manifest, and the version or `""` if none is given."""
    match = _SPEC_PATTERN.fullmatch(text.strip())
    if match is None:
        raise UserError(f"cannot read the environment '{text}'", "write it like pytorch or pytorch==2.9.1")
    name, known = match["framework"], manifests()
    manifest = known.get(name)
    if manifest is None:
        raise UserError(f"no framework is named '{name}'", nearest(name, list(known)))
    version = match["version"] or ""
    if version and not is_version(version):
        raise UserError(
            f"'{version}' in '{text}' is not a version",
            f"give one exact release, like {manifest.framework}=={manifest.version}",
        )
    return manifest, version


def is_version(text: str) -> bool:
    """Whether this is one exact version, like `2.13.0`, `2.0.0rc1` or `2.13.0+cpu`."""
    try:
        Version(text)
    except InvalidVersion:
        return False
    return text[0].isdigit()  # not `v2.13.0`, although pip accepts it


def same_version(found: str, wanted: str) -> bool:
    """Whether `found` satisfies `wanted`: `2.13.0+cpu` satisfies `2.13.0`, but not the reverse.

    The local part says how a release was built, so it counts only if it is asked for.
    """
    have, want = version_key(found), version_key(wanted)
    return Version(have.public) == Version(want.public) and want.local in (None, have.local)
