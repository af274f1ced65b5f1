"""How long a run will take: from the work of its batches and, once it has been measured, this machine's rate.

The rate is the highest in matrix products, which every run measures as the machine's limit and keeps here for the
next plan. Before that, a cautious guess is used.
"""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.result import Limit
from rnnbench.domain.system import Device
from rnnbench.domain.workload import flops
from rnnbench.files import cache_folder, write_atomically
from rnnbench.machine import describe_processor, find_gpus
from rnnbench.plan import Plan

_START_S = 4.0  # to start a worker and import a framework
_FIRST_CALL_S = 3.0  # when nothing is compiled
_VERIFICATION_S = 3.5  # of one case, on a small workload

#: Floating-point operations per second in matrix products where nothing was measured: of one thread, and of a GPU.
_GUESSED_THREAD = 16e9
_GUESSED_GPU = 20e12

#: Of that rate, what a row usually reaches: between 0.14 and 0.83 on 2 cores, half of the rows between 0.4 and 0.55.
_USUAL_SHARE = 0.4

#: Adaptive: batches until a row is warm, and batches that are sampled at least; shorter batches are repeated longer.
_WARM_BATCHES, _WARM_S = 4, 0.5
_SAMPLED_BATCHES, _SAMPLED_S = 5, 2.0
_FIXED_BATCHES = {"2018": 500, "2019": 60}


class Estimate(NamedTuple):
    """Seconds of a whole run."""

    typical_s: float  # when no compilation takes long
    most_s: float  # that the time limits allow
    rate_measured: bool  # whether the rate is this machine's own, and not guessed


def estimate_run(plan: Plan, method: Method) -> Estimate:
    known = {device: known_rate(device, method.threads) for device in {case.device for case in plan.cases}}
    typical = sum(_case_seconds(plan, case, method, known[case.device]) for case in plan.cases)
    most = len(plan.cases) * (method.launches * (method.repeats + 1) + method.verify) * method.limit_seconds
    return Estimate(typical, most, all(rate is not None for rate in known.values()))


def _case_seconds(plan: Plan, case: Case, method: Method, known: float | None) -> float:
    rate = known or (_GUESSED_GPU if case.device == "cuda" else _GUESSED_THREAD * method.threads)
    batch = flops(plan.workloads[case.workload], case.phase) / (rate * _USUAL_SHARE)
    if method.protocol == "adaptive":
        timed = max(_WARM_BATCHES * batch, min(_WARM_S, method.warm_seconds))
        timed += max(_SAMPLED_BATCHES * batch, min(_SAMPLED_S, method.sample_seconds))
    else:
        timed = _FIXED_BATCHES[method.protocol] * batch
    launch = min(_START_S + _FIRST_CALL_S + batch + timed, method.limit_seconds)
    return method.launches * launch + (_VERIFICATION_S if method.verify else 0.0)


def known_rate(device: Device, threads: int) -> float | None:
    """Operations per second that this machine reached at best on this device; None: it had no run."""
    with suppress(OSError, msgspec.MsgspecError):
        rate = msgspec.json.decode(_file(device, threads).read_bytes(), type=float)
        return rate if 0 < rate < float("inf") else None
    return None


def keep_rate(limit: Limit, threads: int) -> None:
    """For later plans, in fp32. A cache that cannot be written is no reason to fail.

    Frameworks differ, and a lasting load is not always seen as noise: the best of all counts, as it does for the limit.
    """
    if limit.outcome == "ok" and limit.flops_per_s and limit.precision == "fp32" and not limit.noisy:
        best = max(limit.flops_per_s, known_rate(limit.device, threads) or 0.0)
        with suppress(OSError):
            write_atomically(_file(limit.device, threads), msgspec.json.encode(best))


def _file(device: Device, threads: int) -> Path:
    """Named by what the rate depends on: a home folder may be shared by machines of several kinds."""
    what = ",".join(gpu.name for gpu in find_gpus()[:1]) if device == "cuda" else f"{describe_processor()}|{threads}"
    return cache_folder() / "rates" / f"{device}-{hashlib.sha256(what.encode()).hexdigest()[:16]}.json"
