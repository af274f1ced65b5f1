"""What came of a run: launches with their raw samples, verifications with their figures, the machine's limits.

There are millions of samples in a large run, and nothing here can be part of a cycle: with `gc=False` the
collector does not look through them again and again while a run is read.
"""

from typing import Literal, NamedTuple

import msgspec

from rnnbench.domain.case import Case
from rnnbench.domain.system import Device, Precision

Outcome = Literal["ok", "failed", "timeout"]
VerificationVerdict = Literal["verified", "wrong", "failed", "timeout"]
Status = Literal["verified", "wrong", "unverified", "failed", "timeout", "unsupported"]


class Interval(NamedTuple):
    """An estimate between the ends of its 95 % confidence interval."""

    low: float
    estimate: float
    high: float


class Sample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One block: so many batches took so many seconds, the device idle at both ends."""

    batches: int
    seconds: float


class GpuState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a GPU says of itself at one moment; None where it does not."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    performance_state: int | None = None  # 0 is the fastest
    slowed_by: tuple[str, ...] = ()  # why the clock is lower than it could be


class Launch(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="launch"):
    """One worker process that timed one case."""

    case: Case
    round: int
    attempt: int = 0  # 0, or how often it was repeated because the machine was busy
    started: str  # UTC, ISO 8601
    outcome: Outcome
    reason: str = ""
    stage: str = ""  # where it was when it failed or ran out of time
    samples: tuple[Sample, ...] = ()
    warm_batches: int = 0
    warm_seconds: float = 0.0
    import_s: float | None = None
    build_s: float | None = None
    first_call_s: float | None = None
    peak_host_bytes: int | None = None
    peak_device_bytes: int | None = None
    parameter_count: int | None = None
    threads: int | None = None  # read back from the framework
    versions: dict[str, str] = {}
    device_name: str = ""
    device_seconds: float | None = None  # of all samples, by the device's own clock
    gpu_before: GpuState | None = None  # right before the samples
    gpu_after: GpuState | None = None
    concurrent_workers: int = 0  # that may have compiled at the same time: its times before the samples are too long
    probe_before_s: float | None = None
    probe_after_s: float | None = None
    noisy: bool = False
    traceback: str = ""
    log: str = ""  # file in the run folder, when anything was printed
    log_tail: str = ""

    @property
    def seconds(self) -> float:
        return sum(sample.seconds for sample in self.samples)

    @property
    def batches(self) -> int:
        return sum(sample.batches for sample in self.samples)


class Figure(msgspec.Struct, frozen=True, gc=False):
    """One compared quantity: its relative L2 error, and the most it may be."""

    quantity: str
    error: float | None  # None: not a finite number
    tolerance: float

    @property
    def passes(self) -> bool:
        return self.error is not None and self.error <= self.tolerance

    @property
    def excess(self) -> float:
        """Error over tolerance: how figures of different tolerances are ranked."""
        return float("inf") if self.error is None else self.error / self.tolerance

    def __str__(self) -> str:
        error = "not finite" if self.error is None else f"{self.error:.2g}"
        return f"{self.quantity}: {error} (tolerance {self.tolerance:.2g})"


class Verification(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="verification"):
    """One system proved, or not, on the small version of a workload. `case.workload` is the small one."""

    case: Case
    verdict: VerificationVerdict
    reason: str = ""
    stage: str = ""
    figures: tuple[Figure, ...] = ()
    versions: dict[str, str] = {}
    seconds: float = 0.0
    cached: bool = False
    log_tail: str = ""

    @property
    def worst(self) -> Figure | None:
        return max(self.figures, key=lambda figure: figure.excess, default=None)


class Timed(msgspec.Struct, frozen=True, array_like=True):
    """So many operations, or bytes, took so many seconds."""

    amount: int
    seconds: float


class Limit(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="limit"):
    """What the machine does at best, seen from one environment on one device in one precision."""

    environment: str
    device: Device
    precision: Precision
    started: str  # UTC, ISO 8601
    outcome: Outcome
    reason: str = ""
    stage: str = ""
    products: tuple[Timed, ...] = ()  # floating-point operations of square matrix products of several sizes
    copies: tuple[Timed, ...] = ()  # bytes read and written
    versions: dict[str, str] = {}
    device_name: str = ""
    threads: int | None = None
    noisy: bool = False  # the machine was busy: it can do better than this
    traceback: str = ""
    log_tail: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.environment, self.device, self.precision)

    @property
    def flops_per_s(self) -> float | None:
        return max((one.amount / one.seconds for one in self.products), default=None)

    @property
    def bytes_per_s(self) -> float | None:
        return max((one.amount / one.seconds for one in self.copies), default=None)


Record = Launch | Verification | Limit


def differ_by_more(before: float, after: float, threshold: float) -> bool:
    """Whether the two differ by more than the threshold, whichever is larger."""
    return max(before, after) > min(before, after) * (1 + threshold)


def is_noisy(launch: Launch, threshold: float) -> bool:
    """Whether the processor's speed or the GPU's clock was another before the samples than after them."""
    return speed_changed(launch.probe_before_s, launch.probe_after_s, threshold) or clocks_moved(launch, threshold)


def clocks_moved(launch: Launch, threshold: float) -> bool:
    """The GPU's clock; never where it is not known."""
    before, after = launch.gpu_before, launch.gpu_after
    return bool(before and after) and any(
        speed_changed(getattr(before, clock), getattr(after, clock), threshold) for clock in ("sm_mhz", "memory_mhz")
    )


def speed_changed(before: float | None, after: float | None, threshold: float) -> bool:
    return before is not None and after is not None and differ_by_more(before, after, threshold)
