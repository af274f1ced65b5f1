"""What an environment should hold: a framework's manifest, read for one version and one device."""

import re
from collections.abc import Sequence

import msgspec
from packaging.version import InvalidVersion, Version

from rnnbench.domain.system import DEVICES, Device, Manifest, version_key
from rnnbench.errors import UserError, nearest
from rnnbench.machine import this_processor
from rnnbench.manifests import manifests

_PATTERN = re.compile(r"(?P<framework>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:==\s*(?P<version>\S+))?")


class EnvironmentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything `create` needs to know, with nothing left to look up."""

    framework: str
    version: str
    variant: Device  # `cpu` also where the manifest has no requirements of its own for CUDA
    python: str  # requirement on the interpreter, e.g. `>=3.10,<3.14`
    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    tooling: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()  # processors that there are wheels for; empty: all

    @property
    def id(self) -> str:
        return f"{self.framework}-{self.version}" + ("-cuda" if self.variant == "cuda" else "")


def no_wheels(architectures: Sequence[str]) -> str:
    """Why this machine cannot have what is offered for these processors; empty when it can, or none is named."""
    here = this_processor().architecture
    if not architectures or here in architectures:
        return ""
    return f"no wheels: this version is offered for {', '.join(architectures)} only, and this machine is {here}"


def parse_spec(text: str, device: str = "cpu") -> EnvironmentSpec:
    """`pytorch` or `pytorch==2.9.1`."""
    if device not in DEVICES:
        raise UserError(f"no device is called '{device}'", f"allowed: {', '.join(DEVICES)}")
    manifest, asked = split_spec(text)
    # Another spelling of the default version is the default's environment, not a second one.
    version = asked if asked and not same_version(manifest.version, asked) else manifest.version
    entry = manifest.requirements_for(version)
    if entry is None:
        ranges = "; ".join(one.versions for one in manifest.requirements)
        raise UserError(
            f"it is not known what {manifest.title} {version} needs", f"its manifest covers versions {ranges}"
        )
    cuda = device == "cuda" and bool(entry.cuda)

    def filled(lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(line.replace("{version}", version) for line in lines)

    return EnvironmentSpec(
        framework=manifest.framework,
        version=version,
        variant="cuda" if cuda else "cpu",
        python=entry.python,
        requirements=filled(entry.cuda if cuda else entry.cpu),
        constraints=filled(entry.constraints),
        tooling=filled(entry.tooling),
        architectures=entry.architectures,
    )


def split_spec(text: str) -> tuple[Manifest, str]:
    """The framework's manifest and the version named, `""` where none is."""
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise UserError(f"cannot read the environment '{text}'", "write it like pytorch or pytorch==2.9.1")
    name, known = match["framework"], manifests()
    manifest = known.get(name)
    if manifest is None:
        raise UserError(f"no framework is named '{name}'", nearest(name, list(known)))
    version = match["version"] or ""
    if version and not is_version(version):
        raise UserError(
            f"'{version}' in '{text}' is no version",
            f"name one exact release, like {manifest.framework}=={manifest.version}",
        )
    return manifest, version


def is_version(text: str) -> bool:
    """Whether this is one exact version, like `2.13.0`, `2.0.0rc1` or `2.13.0+cpu`."""
    try:
        Version(text)
    except InvalidVersion:
        return False
    return text[0].isdigit()  # not `v2.13.0`, which pip would take too


def same_version(found: str, wanted: str) -> bool:
    """Whether `found` is what `wanted` asks for: `2.13.0+cpu` is, for `2.13.0`, but not the reverse.

    The local part says how a release was built, so it counts only where it was asked for.
    """
    have, want = version_key(found), version_key(wanted)
    return Version(have.public) == Version(want.public) and want.local in (None, have.local)
