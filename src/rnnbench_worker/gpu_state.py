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


def gpu_state(library=None, driver=None):
    """The GPU's clocks, power and temperature by NVIDIA's management library, which is part of every driver.

    The worker asks right before and right after the samples: a moment later an idle GPU has changed. None where
    there is no such library, or where it is not certain which GPU is ours: a neighbour's clocks are worse than none.
    """
    try:
        nvml = library or ctypes.CDLL("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() != _SUCCESS:
            return None
        gpu = _gpu_in_use(nvml, driver or _cuda_driver())
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


def _cuda_driver():
    """The library that frameworks themselves call; None where it cannot be loaded."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def _gpu_in_use(nvml, cuda):
    """The management library's handle of CUDA's device 0, which every framework here uses.

    The two number GPUs differently: the management library by PCI bus and whatever CUDA_VISIBLE_DEVICES says, CUDA with
    the fastest first and only those that are visible. The address on the bus means the same to both. A MIG instance
    has the address of its GPU, whose clocks it shares.
    """
    if cuda is None:
        return _gpu_by_variables(nvml)
    device, address = ctypes.c_int(), ctypes.create_string_buffer(32)
    known = (
        cuda.cuInit(0) == _SUCCESS
        and cuda.cuDeviceGet(ctypes.byref(device), 0) == _SUCCESS
        and cuda.cuDeviceGetPCIBusId(address, len(address), device) == _SUCCESS
    )
    return _handle(nvml.nvmlDeviceGetHandleByPciBusId_v2, address.value) if known else None


def _gpu_by_variables(nvml):
    """The first visible GPU, where the variables alone leave no doubt which that is."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if first.startswith("GPU-"):
        return _handle(nvml.nvmlDeviceGetHandleByUUID, first.encode("ascii"))
    if not first.isdigit():
        return None  # none is visible, or it is an instance (MIG) whose GPU the variable does not name
    count = ctypes.c_uint()
    single = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == _SUCCESS and count.value == 1
    if single or os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return _handle(nvml.nvmlDeviceGetHandleByIndex_v2, int(first))
    return None


def _handle(find, name):
    gpu = ctypes.c_void_p()
    return gpu if find(name, ctypes.byref(gpu)) == _SUCCESS else None


def _query(function, gpu, *which, **options):
    """One number, or None where this GPU does not report it."""
    value = options.get("kind", ctypes.c_uint)()
    return int(value.value) if function(gpu, *which, ctypes.byref(value)) == _SUCCESS else None
