"""What the GPU reports about itself while a case is timed, by NVIDIA's management library."""

import ctypes
import os

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
