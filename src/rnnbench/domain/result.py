"""The results of a run: launches with their raw samples, verifications with their figures, the machine's limits.

A large run has millions of samples, and none of these objects can be part of a reference cycle. With `gc=False`
the garbage collector does not traverse them repeatedly while a run is read.
"""

from typing import Literal, NamedTuple

import msgspec

from rnnbench.domain.bounds import Count, CountedOnce, Error, Quantity, Seconds, TimedSeconds, Tolerance
from rnnbench.domain.case import Case
from rnnbench.domain.system import Device, Precision

Outcome = Literal["ok", "failed", "timeout"]
VerificationVerdict = Literal["verified", "wrong", "failed", "timeout"]
Status = Literal["verified", "wrong", "unverified", "failed", "timeout", "unsupported"]


UNCERTAIN = 1.2  # times: an estimate may be higher or lower than this far, and is marked


class Interval(NamedTuple):
    """An estimate and its 95 % confidence interval."""

    low: float
    estimate: float
    high: float

    @property
    def uncertain(self) -> bool:
        """Wider than ±20 %: then the figure is marked wherever it is printed."""
        return self.high > UNCERTAIN * self.estimate or self.low < self.estimate / UNCERTAIN


class Sample(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One timed block of batches. The device is idle at its start and at its end."""

    batches: CountedOnce
    seconds: TimedSeconds


class GpuState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a GPU reports about itself at one moment; None for what it does not report."""

    sm_mhz: Count | None = None
    memory_mhz: Count | None = None
    power_w: Quantity | None = None
    temperature_c: int | None = None
    performance_state: int | None = None  # 0 is the fastest
    slowed_by: tuple[str, ...] = ()  # reasons why the clock is reduced


class Figure(msgspec.Struct, frozen=True, gc=False):
    """One compared quantity: its relative L2 error, and the largest error allowed."""

    quantity: str
    error: Error | None  # None: not a finite number
    tolerance: Tolerance

    @property
    def passes(self) -> bool:
        return self.error is not None and self.error <= self.tolerance

    @property
    def excess(self) -> float:
        """Error over tolerance: it ranks figures that have different tolerances."""
        return float("inf") if self.error is None else self.error / self.tolerance

    def __str__(self) -> str:
        error = "not finite" if self.error is None else f"{self.error:.2g}"
        return f"{self.quantity}: {error} (tolerance {self.tolerance:.2g})"


class Launch(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="launch"):
    """One worker process that timed one case."""

    case: Case
    round: Count
    attempt: Count = 0  # how often it had been repeated before because the machine was busy
    started: str  # UTC, ISO 8601
    outcome: Outcome
    reason: str = ""
    stage: str = ""  # in which it failed or timed out
    samples: tuple[Sample, ...] = ()
    warm_batches: Count = 0
    warm_seconds: Seconds = 0.0
    steady: bool | None = None  # whether the time per batch had stopped falling when sampling began; None: not judged
    import_s: Seconds | None = None
    build_s: Seconds | None = None
    first_call_s: Seconds | None = None
    peak_host_bytes: Count | None = None
    peak_device_bytes: Count | None = None
    parameter_count: Count | None = None
    threads: Count | None = None  # read back from the framework
    versions: dict[str, str] = {}
    device_name: str = ""
    device_seconds: Seconds | None = None  # of all samples, by the device's own clock
    gpu_before: GpuState | None = None  # right before the samples
    gpu_after: GpuState | None = None
    concurrent_workers: Count = (
        0  # that may have compiled at the same time, so that times before the samples are too long
    )
    probe_before_s: Seconds | None = None
    probe_after_s: Seconds | None = None
    probe_best_s: Seconds | None = None  # the best known when the launch ended: of the run, and of the machine
    usage_s: Seconds | None = (
        None  # wall-clock seconds from the first sample to the last, over which these are counted:
    )
    cpu_s: Seconds | None = None  # processor seconds of the worker
    involuntary_switches: Count | None = None  # how often a thread of it had to give up its processor
    others_cpu_s: Seconds | None = None  # processor seconds of others, on the worker's processors
    #: Whether enough blocks were timed on processors at full speed; None: not watched. What was set aside otherwise:
    quiet: bool | None = None
    set_aside_blocks: Count = 0
    set_aside_s: Seconds = 0.0  # with the seconds of the fixed computation between the blocks
    device_paced_blocks: Count = 0  # that count although a processor was slow: the device had set their pace
    noisy: bool = False
    checks: tuple[Figure, ...] = ()  # what the timed program computed at full size, against the reference
    checked: str = ""  # in words, what was checked at full size; "": nothing
    check_s: Seconds = 0.0  # that these checks took, in the worker and in the driver
    seen_s: Seconds | None = None  # of a batch that it had seen, alone, before or after those
    unseen_s: tuple[Seconds, ...] = ()  # of batches that it had not, which are compared with it
    how_it_ran: str = ""  # what the program chose while it ran, where it chooses: one kernel, or step by step
    traceback: str = ""
    log: str = ""  # file in the run folder, if anything was printed
    log_tail: str = ""
    node: str = ""  # of a cluster, on which it was made

    @property
    def seconds(self) -> float:
        return sum(sample.seconds for sample in self.samples)

    @property
    def batches(self) -> int:
        return sum(sample.batches for sample in self.samples)


class Verification(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="verification"):
    """Whether one system was proved on the small version of a workload, which is `case.workload`."""

    case: Case
    verdict: VerificationVerdict
    reason: str = ""
    stage: str = ""
    figures: tuple[Figure, ...] = ()
    versions: dict[str, str] = {}
    seconds: Seconds = 0.0
    cached: bool = False
    log_tail: str = ""
    node: str = ""

    @property
    def worst(self) -> Figure | None:
        return max(self.figures, key=lambda figure: figure.excess, default=None)


class Timed(msgspec.Struct, frozen=True, array_like=True):
    """A number of operations or bytes, and how many seconds they took."""

    amount: CountedOnce
    seconds: TimedSeconds


class Limit(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="limit"):
    """The highest rates of the machine, measured in one environment on one device in one precision."""

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
    threads: Count | None = None
    noisy: bool = False  # the machine was busy: its real rates are higher
    traceback: str = ""
    log_tail: str = ""
    node: str = ""

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
