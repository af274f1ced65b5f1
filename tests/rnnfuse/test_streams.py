"""Each stream is given to one holder, here by a made-up driver: there is no GPU."""

import ctypes
from itertools import count
from types import SimpleNamespace

import pytest
import torch

from rnnfuse import streams, wavefront
from rnnfuse.streams import OwnStream

DEVICE = torch.device("cuda", 0)


class Driver:
    """Makes streams 1, 2, …; or fails, the first times or always."""

    def __init__(self):
        self.made, self.failures = count(1), []

    def __call__(self, handle, flags):
        assert flags == 1  # a stream that waits for the default stream cannot be captured on
        if self.failures:
            return self.failures.pop(0)
        handle._obj.value = next(self.made)
        return 0


@pytest.fixture(autouse=True)
def driver(monkeypatch):
    made_up = Driver()
    monkeypatch.setattr(streams, "_driver", lambda: made_up)
    monkeypatch.setattr(streams, "_unused", streams.defaultdict(list))
    monkeypatch.setattr(wavefront, "_streams", {})
    monkeypatch.setattr(torch.cuda, "device", lambda device: streams.stepwise())  # any context manager
    monkeypatch.setattr(torch.cuda, "ExternalStream", lambda handle, device: SimpleNamespace(cuda_stream=handle))
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: SimpleNamespace(cuda_stream=0))
    return made_up


def number(own):
    return own.stream.cuda_stream


def test_a_stream_has_one_holder_and_then_the_next():
    held = [OwnStream(DEVICE) for _ in range(100)]
    assert all(one.is_alone for one in held)
    assert [number(one) for one in held] == list(range(1, 101))
    del held[40]
    assert number(OwnStream(DEVICE)) == 41
    assert number(OwnStream(torch.device("cuda", 1))) == 101  # of another device
    del held
    assert number(OwnStream(DEVICE)) <= 100


def test_streams_beside_one_end_with_it():
    place = OwnStream(DEVICE)
    first, second = place.beside(0), place.beside(1)
    assert place.beside(0) is first
    assert len({number(one) for one in (place, first, second)}) == 3
    del place, first, second
    assert len(streams._unused[0]) == 3


def test_layers_within_a_capture_have_the_streams_of_its_place(monkeypatch):
    outside = wavefront._stream(DEVICE, 0)
    places = [OwnStream(DEVICE) for _ in range(2)]
    inside = []
    for place in places:
        monkeypatch.setattr(streams._now, "captures_on", place)
        inside.append(wavefront._stream(DEVICE, 0))
    monkeypatch.setattr(streams._now, "captures_on", None)
    assert inside == [place.beside(0) for place in places]
    assert wavefront._stream(DEVICE, 0) is outside
    assert len({number(one) for one in (outside, *places, *inside)}) == 5


def test_a_thread_that_has_asked_nothing_of_the_device_gets_its_context_first(driver, monkeypatch):
    driver.failures = [201]
    asked = []
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: asked.append(True))
    assert OwnStream(DEVICE).is_alone
    assert asked == [True]


@pytest.mark.parametrize("failures", [[2], [201, 201]])
def test_where_the_driver_makes_none_its_holder_is_told(driver, monkeypatch, failures):
    driver.failures = failures
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: None)
    assert not OwnStream(DEVICE).is_alone
    assert streams._unused[0] == []  # PyTorch's own is given to nobody
    assert OwnStream(DEVICE).is_alone  # the next may have more luck


def test_where_there_is_no_driver_its_holder_is_told(monkeypatch):
    monkeypatch.setattr(streams, "_driver", lambda: None)
    assert not OwnStream(DEVICE).is_alone


def test_the_driver_is_looked_for_and_may_be_missing(monkeypatch):
    monkeypatch.undo()
    streams._driver.cache_clear()

    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert streams._driver() is None
    streams._driver.cache_clear()
