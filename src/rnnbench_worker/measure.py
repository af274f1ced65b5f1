"""Timing one case: build, first call, warm-up, samples and memory, with an event after each."""

import ctypes
import os
import resource
import sys

from .clock import Runner, sample, warm_up
from .loading import build_program
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
    # Several batches in turn: with only one, a cache of the last result or of one address would flatter the program.
    staged = [program.stage(batch) for batch in batches]
    runner = Runner(program, job["phase"], staged)
    channel.send("first", seconds=runner.block(1))
    warm_batches, warm_seconds, per_batch = warm_up(runner, job["method"])
    channel.send("warm", batches=warm_batches, seconds=warm_seconds)
    if wait_for_turn():
        # Only now is the machine quiet, and the device may have cooled down during the wait.
        _, _, per_batch = warm_up(runner, job["method"], again=True)
    before = gpu_state() if job["device"] == "cuda" else None
    runner.by_device = 0.0
    channel.send("sampling")
    samples = sample(runner, job["method"], per_batch)
    channel.send(
        "samples",
        samples=[[size, seconds] for size, seconds in samples],
        device_seconds=runner.by_device,
        gpu_before=before,
        gpu_after=gpu_state() if job["device"] == "cuda" else None,
    )
    channel.send("memory", host=peak_host_bytes(), device=program.peak_device_bytes())


def peak_host_bytes():
    """Peak resident set size. /proc counts from exec on; getrusage would include the driver's own size."""
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (IOError, OSError):
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


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
