"""A case: one combination to measure; and the method that measures all cases of a run."""

from typing import Annotated, Literal

import msgspec

from rnnbench.domain.bounds import Count, Quantity, Seconds, TimedSeconds
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
    def without_sizes(self) -> str:
        """The workload as it is named where a small version was verified: `ce-short[cell=gru]` is another program."""
        name, _, changes = self.workload.partition("[")
        cell = [one for one in changes.rstrip("]").split(",") if one.startswith("cell=")]
        return f"{name}[{cell[0]}]" if cell else name

    @property
    def group(self) -> tuple[str, Phase, Device, Precision]:
        """Cases of one group are compared with each other: they differ only in system and environment."""
        return (self.workload, self.phase, self.device, self.precision)


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A case that will not be run, with the reason. It is a result too, shown as `unsupported`."""

    case: Case
    reason: str


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """How every case of a run is measured; stored with the run."""

    protocol: Protocol = "adaptive"
    timing: Timing = "throughput"
    effort: Effort = "standard"
    launches: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 3
    warm_seconds: Seconds = 5.0  # adaptive: what was warm and has waited is warm again after this long
    sample_seconds: Seconds = 15.0  # adaptive: at most this long for the samples
    precision_target: Quantity = 0.02  # adaptive: stop when the 95 % interval is within ± this share of the mean
    threads: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    cpus: tuple[Count, ...] = ()  # the processors that every worker is pinned to; empty: not pinned
    #: Rows on a GPU: of these processors, how many a worker is timed on, those that are quiet; 0: it stays on all.
    quiet_cpus: Count = 0
    limit_seconds: TimedSeconds = 600.0  # per launch, including import and compilation
    memory_bytes: Count = 0  # limit of a worker's data segment; 0: none
    repeats: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 2  # how often a noisy launch may be repeated
    noise_threshold: Quantity = 0.10
    #: Workers that import and compile in parallel; each is timed alone.
    ahead: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1
    seed: Count = 0
    verify: bool = True
    flush_denormals: bool = True


#: `quick` only marks a noisy launch; the others also repeat it.
EFFORTS: dict[Effort, Method] = {
    "quick": Method(effort="quick", launches=1, warm_seconds=1.0, sample_seconds=2.0, precision_target=0.05, repeats=0),
    "standard": Method(),
    "thorough": Method(effort="thorough", launches=8, warm_seconds=10.0, sample_seconds=40.0, precision_target=0.01),
}
