"""A case: one row to be measured, and how it is to be measured."""

from typing import Literal

import msgspec

from rnnbench.domain.system import Device, Precision
from rnnbench.domain.workload import Phase

Protocol = Literal["adaptive", "2018", "2019"]
Timing = Literal["throughput", "latency"]
Effort = Literal["quick", "standard", "thorough"]


class Case(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """workload × system × phase × device × precision × environment, each by its name."""

    workload: str
    system: str
    phase: Phase
    device: Device
    precision: Precision
    environment: str

    @property
    def key(self) -> str:
        return "|".join((self.workload, self.system, self.phase, self.device, self.precision, self.environment))

    @property
    def framework(self) -> str:
        return self.system.partition("/")[0]

    @property
    def group(self) -> tuple[str, Phase, Device, Precision]:
        """What rows are compared within: nothing may differ but who computes it."""
        return (self.workload, self.phase, self.device, self.precision)


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A case that will not be run, with the reason: a result, shown as `unsupported`."""

    case: Case
    reason: str


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """How every case of a run is measured: the same for all, and stored with the run."""

    protocol: Protocol = "adaptive"
    timing: Timing = "throughput"
    effort: Effort = "standard"
    launches: int = 3
    warm_seconds: float = 5.0  # adaptive: at most this long until steady
    sample_seconds: float = 15.0  # adaptive: at most this long sampling
    precision_target: float = 0.02  # adaptive: stop when the 95 % interval is within this share
    threads: int = 1
    cpus: tuple[int, ...] = ()  # the processors every worker is pinned to; empty: not pinned
    limit_seconds: float = 600.0  # per launch, import and compiling included
    memory_bytes: int = 0  # a worker's data limit; 0: none
    repeats: int = 2  # how often a noisy launch is repeated
    noise_threshold: float = 0.10
    ahead: int = 1  # workers that import and compile at once; each is timed alone
    seed: int = 0
    verify: bool = True
    flush_denormals: bool = True


#: Quick marks a launch that was noisy; the others repeat it too.
EFFORTS: dict[Effort, Method] = {
    "quick": Method(effort="quick", launches=1, warm_seconds=1.0, sample_seconds=2.0, precision_target=0.05, repeats=0),
    "standard": Method(),
    "thorough": Method(effort="thorough", launches=8, warm_seconds=10.0, sample_seconds=40.0, precision_target=0.01),
}
