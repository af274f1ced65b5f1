"""Profiles of a case: what its batches consist of, and what a new shape costs. Their times are never samples."""

from typing import Literal

import msgspec

from rnnbench.domain.bounds import Count, Quantity, Seconds, TimedSeconds
from rnnbench.domain.case import Case
from rnnbench.domain.result import Outcome

Change = Literal["batch", "steps"]

#: kept: nothing was built. rebuilt: the framework's counter says that it built again. uncounted: it ran, and there is
#: no counter. anew: the program rejected the shape or computed something else, so another program was built for it.
Rebuilding = Literal["kept", "rebuilt", "uncounted", "anew"]


class Reshape(msgspec.Struct, frozen=True, kw_only=True):
    """What happened when a warm program got one more sequence or one more step."""

    change: Change
    outcome: Rebuilding
    calls: tuple[TimedSeconds, ...]  # seconds of the first call with the new shape, and of those after it
    built: tuple[Count, ...] = ()  # builds counted since then, after each call; empty: there is no counter
    build_s: Seconds = 0.0  # of another program, if one was needed
    reason: str = ""  # why it was needed

    def __post_init__(self) -> None:
        if len(self.calls) < 2 or any(not 0 < call < float("inf") for call in self.calls):
            raise ValueError("a new shape needs at least two calls")
        if self.built and len(self.built) != len(self.calls):
            raise ValueError("builds must be counted at every call")

    @property
    def builds(self) -> int | None:
        return self.built[-1] if self.built else None

    @property
    def warm_s(self) -> float:
        return min(self.calls[1:])

    @property
    def cost_s(self) -> float:
        """The additional time, compared with warm calls, up to the last call in which something was built.

        Without a counter, a call that took more than twice as long as a warm one counts as such a call.
        """
        if self.built:
            building = [k for k in range(1, len(self.built)) if self.built[k] > self.built[k - 1]]
        else:
            building = [k for k, call in enumerate(self.calls) if call > 2 * self.warm_s]
        return self.build_s + sum(max(0.0, call - self.warm_s) for call in self.calls[: 1 + max(building, default=0)])


class Retrace(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="retrace"):
    """One launch that gave new shapes to a warm program."""

    case: Case
    started: str  # UTC, ISO 8601
    outcome: Outcome
    reason: str = ""
    stage: str = ""
    noisy: bool = False  # the machine was busy: the times are too long
    first_call_s: Seconds | None = None
    reshapes: tuple[Reshape, ...] = ()  # all until the launch ended
    versions: dict[str, str] = {}
    log_tail: str = ""
    node: str = ""  # of a cluster, on which it was made

    def of(self, change: Change) -> Reshape | None:
        return next((one for one in self.reshapes if one.change == change), None)


class Operator(msgspec.Struct, frozen=True, array_like=True):
    """The calls of one operator or kernel, and how many seconds they took together."""

    name: str
    count: Quantity
    seconds: Seconds


class Profile(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="profile"):
    """One launch under the framework's own profiler. Times and counts are per batch."""

    case: Case
    started: str  # UTC, ISO 8601
    outcome: Outcome | Literal["none"]  # none: there is no profiler; `reason` says why
    reason: str = ""
    stage: str = ""
    noisy: bool = False  # the machine was busy: the times are too long, and the shares may be off
    batches: Count = 0  # that were profiled
    wall_s: Seconds = 0.0  # of the same program without the profiler
    host_s: Seconds = 0.0  # until the host had issued all work, without the profiler
    profiled_s: Seconds = 0.0  # with the profiler
    operators: Quantity = 0.0  # on the host, without those that call others
    operators_s: Seconds = 0.0  # how long at least one of them ran
    kernels: Quantity | None = None  # on the device, including copies; None: on a CPU
    kernels_s: Seconds | None = None
    kinds: dict[str, Seconds] = {}  # kind of work -> seconds: of the kernels, if there are any
    counts: dict[str, Quantity] = {}  # kind of work -> how many operators or kernels
    top: tuple[Operator, ...] = ()  # those that take longest, scaled like the kinds
    trace: str = ""  # a file beside this one
    versions: dict[str, str] = {}
    log_tail: str = ""
    node: str = ""

    @property
    def count(self) -> float:
        """Operators of a batch; on a GPU, its kernels."""
        return self.operators if self.kernels is None else self.kernels

    @property
    def busy_s(self) -> float:
        """How long at least one of them ran. The profiler adds time of its own, so the batch's time is the maximum."""
        return min(self.wall_s, self.operators_s if self.kernels_s is None else self.kernels_s)

    @property
    def top_shares(self) -> tuple[float, ...]:
        """Of the batch, for each operator of `top`. Earlier versions stored them with the profiler's time."""
        total = sum(one.seconds for one in self.top)
        scale = min(1.0, self.busy_s / total) if total else 0.0
        return tuple(scale * one.seconds / self.wall_s if self.wall_s else 0.0 for one in self.top)

    @property
    def products_s(self) -> float:
        """Seconds of a batch in matrix products, and in operators for whole layers, which consist of them."""
        return self.kinds.get("product", 0.0) + self.kinds.get("recurrent", 0.0)

    @property
    def host_share(self) -> float | None:
        """The share of a batch in which no operator runs; on a GPU, no kernel."""
        return 1 - self.busy_s / self.wall_s if self.outcome == "ok" and self.count else None


ProfileRecord = Profile | Retrace
