"""What the doctor says."""

from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One thing looked at. A problem stops something from working, a warning may."""

    level: Literal["ok", "warning", "problem"]
    what: str
    hint: str = ""
