"""What a profile says of a case: what its batches are made of, and what a new shape costs. Never a sample."""

from typing import Literal

import msgspec

from rnnbench.domain.case import Case
from rnnbench.domain.result import Outcome

Change = Literal["batch", "steps"]

#: kept: nothing was built. rebuilt: the framework counted that it built again. uncounted: it ran, and nobody counts.
#: anew: the program refused the shape or computed something else, so another program was built for it.
Rebuilding = Literal["kept", "rebuilt", "uncounted", "anew"]


class Reshape(msgspec.Struct, frozen=True, kw_only=True):
    """A warm program given one sequence more, or one step more."""

    change: Change
    outcome: Rebuilding
    calls: tuple[float, ...]  # seconds of the first call at the new shape, and of those after it
    built: tuple[int, ...] = ()  # how much had been built after each since then; empty: there is no counter
    build_s: float = 0.0  # of another program, where one was needed
    reason: str = ""  # why it was

    def __post_init__(self) -> None:
        if len(self.calls) < 2 or any(not 0 < call < float("inf") for call in self.calls):
            raise ValueError("a new shape without two calls")
        if self.built and len(self.built) != len(self.calls):
            raise ValueError("builds were not counted at every call")

    @property
    def builds(self) -> int | None:
        return self.built[-1] if self.built else None

    @property
    def warm_s(self) -> float:
        return min(self.calls[1:])

    @property
    def cost_s(self) -> float:
        """Beyond warm calls: the first call, and those up to the last in which something was built.

        Where nobody counts, a call that took twice as long as a warm one was no warm one.
        """
        if self.built:
            building = [k for k in range(1, len(self.built)) if self.built[k] > self.built[k - 1]]
        else:
            building = [k for k, call in enumerate(self.calls) if call > 2 * self.warm_s]
        return self.build_s + sum(max(0.0, call - self.warm_s) for call in self.calls[: 1 + max(building, default=0)])


class Retrace(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="retrace"):
    """One launch that gave a warm program new shapes."""

    case: Case
    started: str  # UTC, ISO 8601
    outcome: Outcome
    reason: str = ""
    stage: str = ""
    first_call_s: float | None = None
    reshapes: tuple[Reshape, ...] = ()  # all there were until it ended
    versions: dict[str, str] = {}
    log_tail: str = ""

    def of(self, change: Change) -> Reshape | None:
        return next((one for one in self.reshapes if one.change == change), None)


class Operator(msgspec.Struct, frozen=True, array_like=True):
    """So many calls of one operator or kernel took so many seconds."""

    name: str
    count: float
    seconds: float


class Profile(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="profile"):
    """One launch under a framework's own profiler. Times and counts are of one batch."""

    case: Case
    started: str  # UTC, ISO 8601
    outcome: Outcome | Literal["none"]  # none: there is no profiler, for the reason given
    reason: str = ""
    stage: str = ""
    batches: int = 0  # that the profiler watched
    wall_s: float = 0.0  # of the same program without the profiler: never a sample
    host_s: float = 0.0  # until the host had said all, without the profiler
    profiled_s: float = 0.0
    operators: float = 0.0  # on the host, those that call no other
    operators_s: float = 0.0  # how long at least one of them ran
    kernels: float | None = None  # on the device, copies included; None: on a CPU
    kernels_s: float | None = None
    kinds: dict[str, float] = {}  # kind of work -> seconds: of kernels where there are any
    counts: dict[str, float] = {}  # kind of work -> how many
    top: tuple[Operator, ...] = ()
    trace: str = ""  # a file beside this one
    versions: dict[str, str] = {}
    log_tail: str = ""

    @property
    def count(self) -> float:
        """Operators of a batch: on a device, its kernels."""
        return self.operators if self.kernels is None else self.kernels

    @property
    def busy_s(self) -> float:
        """How long at least one of them ran. Without the profiler's own time, it cannot be more than the batch."""
        return min(self.wall_s, self.operators_s if self.kernels_s is None else self.kernels_s)

    @property
    def host_share(self) -> float | None:
        """The share of a batch in which no operator runs, or the device waits for the host."""
        return 1 - self.busy_s / self.wall_s if self.outcome == "ok" and self.count else None


ProfileRecord = Profile | Retrace
