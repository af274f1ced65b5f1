"""The result of profiling a case: its last profile and last retrace, the bottleneck they show, and what would help."""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from rnnbench import units
from rnnbench.analysis.limit import TOLERANCE, Peak
from rnnbench.domain.case import Case
from rnnbench.domain.profile import Profile, ProfileRecord, Reshape, Retrace
from rnnbench.domain.system import Device
from rnnbench.domain.workload import Workload, flops

BottleneckName = Literal["launch-bound", "dispatch-bound", "matrix-multiply-bound", "memory-bound", ""]
HALF = 0.5


class Bottleneck(msgspec.Struct, frozen=True):
    """Its name, and the figures behind it. The name is empty where nothing takes half of the time."""

    name: BottleneckName
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}" if self.name else f"no single bottleneck: {self.why}"


def find_bottleneck(profile: Profile) -> Bottleneck:
    return name_bottleneck(profile.case.device, profile.wall_s, profile.busy_s, profile.count, profile.kinds)


def name_bottleneck(
    device: Device, wall_s: float, busy_s: float, count: float, kinds: Mapping[str, float]
) -> Bottleneck:
    """`wall_s` is the time of one batch, `busy_s` the part in which an operator runs, `kinds` the seconds by kind."""
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
        layers = kinds.get("recurrent", 0.0) / wall_s
        inside = f" ({units.share(layers)} in operators for whole layers)" if layers else ""
        return Bottleneck(
            "matrix-multiply-bound", f"matrix products take {units.share(product)} of a batch{inside}; {numbers}"
        )
    if memory >= HALF:
        return Bottleneck(
            "memory-bound", f"element-wise operators and copies take {units.share(memory)} of a batch; {numbers}"
        )
    others = max(0.0, 1 - waiting - product - memory)
    return Bottleneck(
        "",
        f"no {what} runs in {units.share(waiting)} of a batch, matrix products take {units.share(product)}, "
        f"element-wise operators and copies {units.share(memory)}, others {units.share(others)}; {numbers}",
    )


class ProductRate(msgspec.Struct, frozen=True):
    """How fast the matrix products of a batch run, by the work that the workload needs at least."""

    flops_per_s: float
    of_limit: float | None  # None: the machine's limit was not measured


def find_product_rate(profile: Profile, workload: Workload, peak: Peak | None) -> ProductRate | None:
    """None where no operator is called a product, or too few: some hide in operators with other names."""
    if profile.outcome != "ok" or profile.products_s <= 0:
        return None
    rate = flops(workload, profile.case.phase) / profile.products_s
    share = rate / peak.flops_per_s if peak else None
    return None if share is not None and share > TOLERANCE else ProductRate(rate, share)


_NEAR_LIMIT = 0.7


def find_remedy(bottleneck: Bottleneck, rate: ProductRate | None, granularity: str) -> str:
    """What would help, in one line. Gates can be packed only where they are not."""
    pack = "pack the gates into one product, or " if granularity == "fine" else ""
    match bottleneck.name:
        case "launch-bound":
            return f"{pack}replay the whole step as one CUDA graph (cudagraph): fewer launches by the host"
        case "dispatch-bound":
            return f"{pack}let the framework see the whole loop (script, compile, graph, jit): fewer, larger operators"
        case "memory-bound":
            return "fuse the element-wise operators: an execution that compiles them, or a cell in one operator"
        case "":
            return "nothing takes half of a batch, so no single change will halve it: try a coarser granularity"
        case "matrix-multiply-bound" if rate is None or rate.of_limit is None:
            return f"{pack}use a larger batch, or a lower precision: the products are what takes the time"
        case "matrix-multiply-bound" if rate.of_limit >= _NEAR_LIMIT:
            return "the products run near the machine's limit: only less work or a lower precision helps"
    return f"{pack}use a larger batch: the products are too small for this machine"


class ProfileResult(msgspec.Struct, frozen=True):
    """The last records of one case; either may be missing."""

    case: Case
    profile: Profile | None = None
    retrace: Retrace | None = None

    @property
    def successful_profile(self) -> Profile | None:
        """None where the profiler failed or there is none."""
        return self.profile if self.profile is not None and self.profile.outcome == "ok" else None

    @property
    def bottleneck(self) -> Bottleneck | None:
        return find_bottleneck(self.successful_profile) if self.successful_profile else None

    @property
    def noisy(self) -> bool:
        return any(one is not None and one.noisy for one in (self.profile, self.retrace))

    @property
    def new_batch(self) -> Reshape | None:
        return self.retrace.of("batch") if self.retrace else None

    @property
    def new_length(self) -> Reshape | None:
        return self.retrace.of("steps") if self.retrace else None


def find_profile_results(profiles: Iterable[ProfileRecord]) -> dict[str, ProfileResult]:
    """By the case's key; a later record replaces an earlier one."""
    results: dict[str, ProfileResult] = {}
    for record in profiles:
        before = results.get(record.case.key, ProfileResult(record.case))
        changed = {"profile" if isinstance(record, Profile) else "retrace": record}
        results[record.case.key] = msgspec.structs.replace(before, **changed)
    return results
