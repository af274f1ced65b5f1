"""What a worker reads about the GPU, from a fake of NVIDIA's library."""

import ctypes

import pytest

from rnnbench_worker.gpu_state import gpu_state

REFUSED = 3  # "not supported"


class Library:
    """Answers with these numbers, and refuses all other queries."""

    def __init__(self, start=0, **values):
        self.start, self.values, self.asked = start, values, []

    def nvmlInit_v2(self):
        return self.start

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):
        self.asked.append(index)
        return 0

    def nvmlDeviceGetHandleByUUID(self, name, handle):
        self.asked.append(name)
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


@pytest.mark.parametrize(("visible", "asked"), [("", 0), ("2,0", 2), ("GPU-aa-bb", b"GPU-aa-bb")])
def test_the_gpu_that_frameworks_see_first_is_asked(monkeypatch, visible, asked):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    library = Library(sm=1980)
    gpu_state(library)
    assert library.asked == [asked]
