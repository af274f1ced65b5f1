"""What profiles say of each case: its last profile and its last retrace."""

from collections.abc import Iterable

import msgspec

from rnnbench.domain.case import Case
from rnnbench.domain.profile import Profile, ProfileRecord, Reshape, Retrace
from rnnbench.profile.bottleneck import Bottleneck, find_bottleneck


class Profiled(msgspec.Struct, frozen=True):
    """Either may be missing."""

    case: Case
    profile: Profile | None = None
    retrace: Retrace | None = None

    @property
    def counted(self) -> Profile | None:
        """The profile, where it worked."""
        return self.profile if self.profile is not None and self.profile.outcome == "ok" else None

    @property
    def bottleneck(self) -> Bottleneck | None:
        return find_bottleneck(self.counted) if self.counted else None

    @property
    def new_batch(self) -> Reshape | None:
        return self.retrace.of("batch") if self.retrace else None

    @property
    def new_length(self) -> Reshape | None:
        return self.retrace.of("steps") if self.retrace else None


def find_profiled(profiles: Iterable[ProfileRecord]) -> dict[str, Profiled]:
    """By the case's key; a later record stands for an earlier one."""
    found: dict[str, Profiled] = {}
    for record in profiles:
        before = found.get(record.case.key, Profiled(record.case))
        changed = {"profile" if isinstance(record, Profile) else "retrace": record}
        found[record.case.key] = msgspec.structs.replace(before, **changed)
    return found
