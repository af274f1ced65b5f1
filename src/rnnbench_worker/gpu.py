"""The GPU's clocks, power and temperature, from NVIDIA's management library, which is part of every driver.

Asked for within the worker, right before and right after the samples: a moment later an idle GPU has changed.
"""

import ctypes
import os

_SM, _MEMORY = 1, 2
_SUCCESS = 0
#: Bits of the library's reasons for a lower clock, but for those that only say "idle" or "as set".
_REASONS = (
    (0x4, "power cap"),
    (0x8, "hardware slowdown"),
    (0x20, "thermal, by software"),
    (0x40, "thermal, by hardware"),
    (0x80, "power brake"),
)


def gpu_state(library=None):
    """A dict of what can be read, or None where there is no such library or it knows no GPU of ours."""
    try:
        nvml = library or ctypes.CDLL("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() != _SUCCESS:
            return None
        handle = _ours(nvml)
    except (OSError, AttributeError):
        return None
    if handle is None:
        return None
    power = _read(nvml.nvmlDeviceGetPowerUsage, handle)
    reasons = _read(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle, kind=ctypes.c_ulonglong)
    return {
        "sm_mhz": _read(nvml.nvmlDeviceGetClockInfo, handle, _SM),
        "memory_mhz": _read(nvml.nvmlDeviceGetClockInfo, handle, _MEMORY),
        "power_w": None if power is None else power / 1000.0,
        "temperature_c": _read(nvml.nvmlDeviceGetTemperature, handle, 0),
        "performance_state": _read(nvml.nvmlDeviceGetPerformanceState, handle),
        "slowed_by": [name for bit, name in _REASONS if reasons is not None and reasons & bit],
    }


def _ours(nvml):
    """The first GPU that frameworks see: the library itself does not heed CUDA_VISIBLE_DEVICES."""
    handle = ctypes.c_void_p()
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() or "0"
    if first.isdigit():
        answer = nvml.nvmlDeviceGetHandleByIndex_v2(int(first), ctypes.byref(handle))
    else:
        answer = nvml.nvmlDeviceGetHandleByUUID(first.encode("ascii"), ctypes.byref(handle))
    return handle if answer == _SUCCESS else None


def _read(function, handle, *which, **options):
    """One number, or None where this GPU does not give it away."""
    value = options.get("kind", ctypes.c_uint)()
    return int(value.value) if function(handle, *which, ctypes.byref(value)) == _SUCCESS else None
