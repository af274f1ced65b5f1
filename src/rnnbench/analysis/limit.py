"""The limit: the least time a batch can take, which is its necessary work at the machine's best rates.

The rates are the machine's, not a framework's: the best matrix product and the best copy that any
environment of the run has reached on that device in that precision.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from rnnbench.domain.result import Interval, Limit, Record
from rnnbench.domain.system import Precision
from rnnbench.domain.workload import Phase, Workload, compulsory_bytes, flops


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """The best rates measured on one device of one machine in one precision, and the environments that reached them."""

    run: int
    node: str = ""  # of a run that was spread over a cluster
    device: str
    precision: str
    flops_per_s: float
    flops_environment: str
    bytes_per_s: float
    bytes_environment: str
    noisy: bool  # the machine was busy while one of the two was measured


class LeastTime(msgspec.Struct, frozen=True, kw_only=True):
    """A workload's necessary work, and the least time the machine needs for it."""

    flops: int
    bytes: int
    products_s: float
    memory_s: float
    seconds: float  # the larger of the two
    bound_by: Literal["products", "memory"]


Peaks = dict[tuple[str, str, str], Peak]


def find_peaks(records: Iterable[Record], run: int = 0) -> Peaks:
    """By node, device and precision; only where some environment measured both rates."""
    measured: dict[tuple[str, str, str], list[Limit]] = {}
    for record in records:
        if isinstance(record, Limit) and record.flops_per_s and record.bytes_per_s:
            measured.setdefault((record.node, record.device, record.precision), []).append(record)
    peaks = {}
    for (node, device, precision), limits in measured.items():
        product = max(limits, key=lambda limit: limit.flops_per_s or 0.0)
        copy = max(limits, key=lambda limit: limit.bytes_per_s or 0.0)
        peaks[node, device, precision] = Peak(
            run=run,
            node=node,
            device=device,
            precision=precision,
            flops_per_s=product.flops_per_s or 0.0,
            flops_environment=product.environment,
            bytes_per_s=copy.bytes_per_s or 0.0,
            bytes_environment=copy.environment,
            noisy=product.noisy or copy.noisy,
        )
    return peaks


def least_time(workload: Workload, phase: Phase, precision: Precision, peak: Peak) -> LeastTime:
    operations, traffic = flops(workload, phase), compulsory_bytes(workload, phase, precision)
    products, memory = operations / peak.flops_per_s, traffic / peak.bytes_per_s
    return LeastTime(
        flops=operations,
        bytes=traffic,
        products_s=products,
        memory_s=memory,
        seconds=max(products, memory),
        bound_by="products" if products >= memory else "memory",
    )


#: A row is above the limit when its whole interval is faster by more than this. The rates are the best of a few
#: seconds, and the machine's speed may change by 10 % before a launch is called noisy.
TOLERANCE = 1.1

#: Where the machine was busy while its rates were measured: then a fixed computation has taken up to twice as long.
BUSY_TOLERANCE = 2.0


def is_above(share: Interval, peak: Peak) -> bool:
    """Whether a row is faster than the machine can be: it was not timed rightly, or does not do its work."""
    return share.low > (BUSY_TOLERANCE if peak.noisy else TOLERANCE)


def share(least: LeastTime, wall: Interval) -> Interval:
    """The least time over a row's wall time: 1 means that the row cannot be faster."""
    return Interval(least.seconds / wall.high, least.seconds / wall.estimate, least.seconds / wall.low)
