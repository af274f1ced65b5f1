"""What holds a batch up, in one sentence with its figures. Half of the batch is what it takes to be named.

In this order, for what nobody waits for cannot be a bottleneck:

1. For half of the batch no operator runs, or the device waits: the host is too slow in saying what to do. That is
   `launch-bound` on a device, and `dispatch-bound` on a CPU, where the time goes into the interpreter, the framework's
   bookkeeping, and whatever else is no operator.
2. Matrix products, or operators for whole layers, which are products inside, take half of it: `matrix-multiply-bound`.
3. Element-wise operators, copies and the like take half of it: `memory-bound`. They do little with each number.
4. Otherwise nothing is named.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from rnnbench.domain.profile import Profile
from rnnbench.domain.system import Device
from rnnbench.report import units

Name = Literal["launch-bound", "dispatch-bound", "matrix-multiply-bound", "memory-bound", ""]

HALF = 0.5


class Bottleneck(msgspec.Struct, frozen=True):
    """Its name, empty where none can be named; and why."""

    name: Name
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}" if self.name else f"no single bottleneck: {self.why}"


def find_bottleneck(profile: Profile) -> Bottleneck:
    return judge(profile.case.device, profile.wall_s, profile.busy_s, profile.count, profile.kinds)


def judge(device: Device, wall_s: float, busy_s: float, count: float, kinds: Mapping[str, float]) -> Bottleneck:
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
