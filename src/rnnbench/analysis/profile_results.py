"""What profiles say of each case: its last profile and its last retrace."""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from rnnbench import units
from rnnbench.domain.case import Case
from rnnbench.domain.profile import Profile, ProfileRecord, Reshape, Retrace
from rnnbench.domain.system import Device

BottleneckName = Literal["launch-bound", "dispatch-bound", "matrix-multiply-bound", "memory-bound", ""]
HALF = 0.5


class Bottleneck(msgspec.Struct, frozen=True):
    """Its name, empty where none can be named; and why."""

    name: BottleneckName
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}" if self.name else f"no single bottleneck: {self.why}"


def find_bottleneck(profile: Profile) -> Bottleneck:
    return name_bottleneck(profile.case.device, profile.wall_s, profile.busy_s, profile.count, profile.kinds)


def name_bottleneck(
    device: Device, wall_s: float, busy_s: float, count: float, kinds: Mapping[str, float]
) -> Bottleneck:
    """From the seconds of one batch, those in which an operator runs, how many run, and their seconds by kind."""
    what = "kernel" if device == "cuda" else "operator"
    if not count or wall_s <= 0:
        return Bottleneck("", f"the profiler saw no {what}")
    waiting = max(0.0, 1 - busy_s / wall_s)
    product = (kinds.get("product", 0.0) + kinds.get("recurrent", 0.0)) / wall_s
    memory = kinds.get("memory", 0.0) / wall_s
    numbers = f"{units.figures(count)} {what}s take {units.seconds(busy_s)} of {units.seconds(wall_s)}"
    if waiting >= HALF and device == "cuda":
        return Bottleneck("launch-bound", f"the device waits for the host in {units.share(waiting)}; {numbers}")
    if waiting >= HALF:
        return Bottleneck("dispatch-bound", f"no operator runs in {units.share(waiting)} of a batch; {numbers}")
    if product >= HALF:
        whole = kinds.get("recurrent", 0.0) / wall_s
        inside = f", of it {units.share(whole)} in operators for whole layers" if whole else ""
        return Bottleneck(
            "matrix-multiply-bound", f"products take {units.share(product)} of a batch{inside}; {numbers}"
        )
    if memory >= HALF:
        return Bottleneck(
            "memory-bound", f"element-wise operators and copies take {units.share(memory)} of a batch; {numbers}"
        )
    others = max(0.0, 1 - waiting - product - memory)
    return Bottleneck(
        "",
        f"{units.share(waiting)} without an {what}, {units.share(product)} in products, {units.share(memory)} in "
        f"element-wise operators and copies, {units.share(others)} in others; {numbers}",
    )


class ProfileResult(msgspec.Struct, frozen=True):
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


def find_profile_results(profiles: Iterable[ProfileRecord]) -> dict[str, ProfileResult]:
    """By the case's key; a later record stands for an earlier one."""
    found: dict[str, ProfileResult] = {}
    for record in profiles:
        before = found.get(record.case.key, ProfileResult(record.case))
        changed = {"profile" if isinstance(record, Profile) else "retrace": record}
        found[record.case.key] = msgspec.structs.replace(before, **changed)
    return found
