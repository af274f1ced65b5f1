"""What a worker reads about the GPU, and which GPU it asks, from fakes of NVIDIA's libraries."""

import ctypes

import pytest

from rnnbench_worker import gpu_state as module
from rnnbench_worker.gpu_state import gpu_state

REFUSED = 3  # "not supported"


class Library:
    """Answers with these numbers, and refuses all other queries."""

    def __init__(self, start=0, gpus=1, **values):
        self.start, self.gpus, self.values, self.asked = start, gpus, values, []

    def nvmlInit_v2(self):
        return self.start

    def nvmlDeviceGetCount_v2(self, place):
        place._obj.value = self.gpus
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):
        self.asked.append(index)
        return 0

    def nvmlDeviceGetHandleByUUID(self, name, handle):
        self.asked.append(name)
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, address, handle):
        self.asked.append(address)
        return 0

    def _put(self, name, place):
        if name not in self.values:
            return REFUSED
        place._obj.value = self.values[name]
        return 0

    def nvmlDeviceGetClockInfo(self, handle, which, place):
        return self._put({1: "sm", 2: "memory"}[which], place)

    def nvmlDeviceGetPowerUsage(self, handle, place):
        return self._put("power", place)

    def nvmlDeviceGetTemperature(self, handle, sensor, place):
        return self._put("temperature", place)

    def nvmlDeviceGetPerformanceState(self, handle, place):
        return self._put("state", place)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle, place):
        assert isinstance(place._obj, ctypes.c_ulonglong)
        return self._put("reasons", place)


class Cuda:
    """CUDA's driver on a machine whose visible GPUs have these addresses, in CUDA's own order."""

    def __init__(self, *addresses, start=0):
        self.addresses, self.start = addresses, start

    def cuInit(self, flags):
        return self.start

    def cuDeviceGet(self, place, index):
        if index >= len(self.addresses):
            return 101  # "invalid device"
        place._obj.value = index + 40  # CUDA's name for a device need not be its index
        return 0

    def cuDeviceGetPCIBusId(self, place, length, device):
        place.value = self.addresses[device.value - 40]
        assert len(place.value) < length
        return 0


@pytest.fixture(autouse=True)
def one_gpu(monkeypatch):
    """No variable says anything, and CUDA's own library is not there."""
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "_cuda_driver", lambda: None)


def test_everything_a_gpu_tells_is_taken_down():
    state = gpu_state(Library(sm=1980, memory=3201, power=126447, temperature=34, state=0, reasons=0x1 | 0x4 | 0x40))
    assert state == {
        "sm_mhz": 1980,
        "memory_mhz": 3201,
        "power_w": 126.447,
        "temperature_c": 34,
        "performance_state": 0,
        "slowed_by": ["power cap", "thermal, by hardware"],
    }


def test_what_a_gpu_refuses_is_not_known():
    state = gpu_state(Library(sm=1980))
    assert state["sm_mhz"] == 1980
    assert state["power_w"] is None
    assert state["slowed_by"] == []


def test_a_library_that_does_not_start_is_no_gpu():
    assert gpu_state(Library(start=9)) is None


SLOW, FAST = b"0000:01:00.0", b"0000:81:00.0"


@pytest.mark.parametrize("visible", [None, "0", "1,0", "GPU-aa-bb", "MIG-cc-dd"])
def test_of_two_gpus_the_one_that_cuda_puts_first_is_asked(monkeypatch, visible):
    """CUDA has the fast one first, whatever the variables are; by its index the slow one would be asked."""
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    library = Library(gpus=2, sm=1980)
    assert gpu_state(library, Cuda(FAST, SLOW))["sm_mhz"] == 1980
    assert library.asked == [FAST]


@pytest.mark.parametrize("cuda", [Cuda(), Cuda(FAST, start=100)])
def test_where_cuda_sees_no_gpu_none_is_asked(cuda):
    library = Library(sm=1980)
    assert gpu_state(library, cuda) is None
    assert library.asked == []


@pytest.mark.parametrize(
    ("gpus", "visible", "order", "asked"),
    [
        (1, None, None, [0]),
        (2, None, None, []),  # CUDA's first may be either
        (2, "1,0", None, []),
        (2, "1,0", "PCI_BUS_ID", [1]),
        (2, "1,0", "FASTEST_FIRST", []),
        (2, "GPU-aa-bb,0", None, [b"GPU-aa-bb"]),
        (1, "MIG-cc-dd", None, []),
        (1, "", None, []),  # set but empty: CUDA sees none
        (1, "-1", None, []),
    ],
)
def test_without_cudas_library_a_gpu_is_asked_only_where_the_variables_leave_no_doubt(
    monkeypatch, gpus, visible, order, asked
):
    for name, value in (("CUDA_VISIBLE_DEVICES", visible), ("CUDA_DEVICE_ORDER", order)):
        if value is not None:
            monkeypatch.setenv(name, value)
    library = Library(gpus=gpus, sm=1980)
    assert (gpu_state(library) is None) == (not asked)
    assert library.asked == asked
