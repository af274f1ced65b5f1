"""How a run is measured, from what the user asks for and what the machine has."""

from typing import Any, get_args

import msgspec

from rnnbench.domain.case import EFFORTS, Effort, Method, Protocol, Timing
from rnnbench.errors import UserError
from rnnbench.machine import allowed_cpus, physical_cpus, total_memory


def make_method(
    *,
    effort: str = "standard",
    protocol: str = "adaptive",
    timing: str = "throughput",
    launches: int = 0,
    repeats: int | None = None,
    limit_seconds: float = 600.0,
    memory_gb: float = 0.0,
    threads: int = 0,
    seed: int = 0,
    verify: bool = True,
    ahead: int = 1,
    **others: Any,
) -> Method:
    """A Method from checked options. 0 or None: the value of the effort or of the machine. `others` are more fields."""
    for value, allowed, what in (
        (effort, get_args(Effort), "effort"),
        (protocol, get_args(Protocol), "protocol"),
        (timing, get_args(Timing), "timing"),
    ):
        if value not in allowed:
            raise UserError(f"'{value}' is not a valid {what}", f"allowed: {', '.join(allowed)}")
    for number, least, most, what in (
        (launches, 0, 10_000, "launches"),
        (repeats or 0, 0, 10_000, "the number of repeats"),
        (limit_seconds, 1, 10**9, "the time limit"),
        (memory_gb, 0, 10**6, "the memory limit"),
        (threads, 0, 100_000, "threads"),
        (seed, 0, 10**15, "the seed"),
        (ahead, 1, 10_000, "the number of parallel workers"),
    ):
        if number > most:
            raise UserError(f"{what} cannot be {_shown(number)}: it is too large", f"it can be at most {most:,}")
        if not least <= number:  # written so that NaN is refused too
            raise UserError(f"{what} cannot be {number:g}", f"it must be at least {least}")
    if ahead > 1 and protocol != "adaptive":
        raise UserError(
            f"parallel workers cannot be combined with the protocol of {protocol}",
            "it fixes the number of discarded batches, but a worker that has waited must warm up again",
        )
    base = next(method for name, method in EFFORTS.items() if name == effort)
    count, cpus = pick_threads(threads)
    method = msgspec.structs.replace(
        base,
        protocol=protocol,
        timing=timing,
        launches=launches or base.launches,
        repeats=base.repeats if repeats is None else repeats,
        limit_seconds=float(limit_seconds),
        memory_bytes=int(memory_gb * 1e9) or int(0.9 * total_memory()),
        threads=count,
        cpus=cpus,
        seed=seed,
        verify=verify,
        ahead=ahead,
        **others,
    )
    try:
        return msgspec.convert(msgspec.to_builtins(method), Method)  # what could not be read again is refused now
    except msgspec.ValidationError as error:
        raise UserError(f"this method cannot be used: {error}", "choose smaller numbers") from error


def _shown(number: float) -> str:
    """Also an integer of a thousand digits, which no float can be made of."""
    return f"{number:g}" if number < 10**300 else "so many"


def pick_threads(wanted: int) -> tuple[int, tuple[int, ...]]:
    """The number of threads, and the processors they are pinned to: on different cores, as long as there are enough."""
    cores, everything = physical_cpus(), allowed_cpus()
    count = wanted or len(cores)
    if count > len(everything):
        raise UserError(f"{count} threads are too many", f"this process may use {len(everything)} processors")
    order = cores + [cpu for cpu in everything if cpu not in cores]
    return count, tuple(sorted(order[:count]))
