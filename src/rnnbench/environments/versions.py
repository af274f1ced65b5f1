"""Comparing the version somebody asked for with the version an environment holds."""

import re

_NUMBER = r"\d+(\.\d+)*"
_VERSION = re.compile(_NUMBER + r"((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+([._-][a-z0-9]+)*)?")


def is_version(text: str) -> bool:
    """Whether this is one exact version, like `2.13.0`, `2.0.0rc1` or `2.13.0+cpu`."""
    return _VERSION.fullmatch(text) is not None


def same_version(found: str, wanted: str) -> bool:
    """Whether `found` is what `wanted` asks for: `2.13.0+cpu` is, for `2.13.0`, but not the other way round.

    The local part says how a release was built, so it counts only where it was asked for.
    """
    found_public, _, found_local = found.partition("+")
    wanted_public, _, wanted_local = wanted.partition("+")
    return _trimmed(found_public) == _trimmed(wanted_public) and wanted_local in ("", found_local)


def _trimmed(public: str) -> str:
    """`2.13` and `2.13.0` are one release."""
    return re.sub(r"(\.0)+$", "", public)
