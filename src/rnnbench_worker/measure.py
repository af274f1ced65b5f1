"""Timing one case: build, first call, warm-up, samples and memory, with an event after each."""

import ctypes
import os
import time

from .clock import RESTARTS, Budget, Runner, sample, still_falling, warm_up
from .full_size import FullSize
from .loading import STARTED, build_program
from .memory import peak_host_bytes
from .protocol import wait_for_turn

#: Constants of NVIDIA's management library.
_SM_CLOCK, _MEMORY_CLOCK, _SUCCESS = 1, 2, 0
#: Bits of its reasons for a lower clock, without those that only say "idle" or "as set".
_THROTTLE_REASONS = (
    (0x4, "power cap"),
    (0x8, "hardware slowdown"),
    (0x20, "thermal, by software"),
    (0x40, "thermal, by hardware"),
    (0x80, "power brake"),
)


def measure(job, framework, channel):
    program, _, batches = build_program(job, framework, channel)
    repeated, unseen = batches[: job["repeated"]], batches[job["repeated"] :]
    # Several batches in turn: with only one, a cache of the last result or of one address would flatter the program.
    runner = Runner(program, job["phase"], [program.stage(batch) for batch in repeated])
    full_size = FullSize(job, program, runner, channel) if job["check"] else None
    channel.send("first", seconds=runner.block(1))
    earlier = full_size.first_batches() if full_size else ()
    limit_s = job["method"]["limit_seconds"]
    warm = warm_up(runner, job["method"], Budget(limit_s - (time.perf_counter() - STARTED)), earlier)
    channel.send("warm", batches=warm.batches, seconds=warm.seconds)
    if wait_for_turn():
        # Only now is the machine quiet, and the device may have cooled down during the wait.
        warm = warm_up(runner, job["method"], Budget(limit_s / 2), again=True)
    take_samples(job, runner, channel, warm)
    if full_size:
        full_size.unseen_batches(unseen)
    channel.send("memory", host=peak_host_bytes(), device=program.peak_device_bytes())


def take_samples(job, runner, channel, warm):
    """Sample; again, if the first samples show that the program was still getting faster: they were its warm-up."""
    cuda, adaptive = job["device"] == "cuda", warm.steady is not None
    for _ in range(RESTARTS + 1):
        before = gpu_state() if cuda else None
        runner.by_device = 0.0
        channel.send("sampling")
        samples = sample(runner, job["method"], warm.per_batch)
        falling = adaptive and still_falling(samples)
        if not falling:
            break
    channel.send(
        "samples",
        samples=[[size, seconds] for size, seconds in samples],
        steady=warm.steady and not falling if adaptive else None,
        device_seconds=runner.by_device,
        gpu_before=before,
        gpu_after=gpu_state() if cuda else None,
    )


def gpu_state(library=None):
    """The GPU's clocks, power and temperature by NVIDIA's management library, which is part of every driver.

    The worker asks right before and right after the samples: a moment later an idle GPU has changed. None where
    there is no such library, or where it does not know our GPU.
    """
    try:
        nvml = library or ctypes.CDLL("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() != _SUCCESS:
            return None
        gpu = _first_visible_gpu(nvml)
    except (OSError, AttributeError):
        return None
    if gpu is None:
        return None
    power = _query(nvml.nvmlDeviceGetPowerUsage, gpu)
    reasons = _query(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, gpu, kind=ctypes.c_ulonglong)
    return {
        "sm_mhz": _query(nvml.nvmlDeviceGetClockInfo, gpu, _SM_CLOCK),
        "memory_mhz": _query(nvml.nvmlDeviceGetClockInfo, gpu, _MEMORY_CLOCK),
        "power_w": None if power is None else power / 1000.0,
        "temperature_c": _query(nvml.nvmlDeviceGetTemperature, gpu, 0),
        "performance_state": _query(nvml.nvmlDeviceGetPerformanceState, gpu),
        "slowed_by": [name for bit, name in _THROTTLE_REASONS if reasons is not None and reasons & bit],
    }


def _first_visible_gpu(nvml):
    """The first GPU that frameworks see: the library itself ignores CUDA_VISIBLE_DEVICES."""
    gpu = ctypes.c_void_p()
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() or "0"
    if first.isdigit():
        answer = nvml.nvmlDeviceGetHandleByIndex_v2(int(first), ctypes.byref(gpu))
    else:
        answer = nvml.nvmlDeviceGetHandleByUUID(first.encode("ascii"), ctypes.byref(gpu))
    return gpu if answer == _SUCCESS else None


def _query(function, gpu, *which, **options):
    """One number, or None where this GPU does not report it."""
    value = options.get("kind", ctypes.c_uint)()
    return int(value.value) if function(gpu, *which, ctypes.byref(value)) == _SUCCESS else None
