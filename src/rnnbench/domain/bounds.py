"""What numbers and names may be, wherever they come from: a worker's pipe, a run folder, a manifest.

msgspec checks these while it decodes, so that a value that is refused from a worker is refused from a file too, and a
million samples are checked at no cost in Python. JSON has no infinity and no NaN. The upper bounds are far above
anything measured; they keep sums and quotients finite.
"""

import re
from typing import Annotated

import msgspec

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
#: Of something that was timed. No clock shows less than a nanosecond, so less was not measured.
TimedSeconds = Annotated[float, msgspec.Meta(ge=1e-9, le=1e9)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
CountedOnce = Annotated[int, msgspec.Meta(ge=1, le=10**18)]
Quantity = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
Error = Annotated[float, msgspec.Meta(ge=0)]
Tolerance = Annotated[float, msgspec.Meta(ge=1e-300, le=1e9)]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,119}")


def require_name(text: str, what: str) -> None:
    """Raise a ValueError unless this can be part of a file's name: names and versions also name folders."""
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{what} cannot be {text[:60]!a}: it must begin with a letter or a digit, and have at most 120 "
            "letters, digits and . _ + ! -"
        )
