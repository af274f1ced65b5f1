"""Each stream is given to one holder: PyTorch's own hand out 32 in turn, here without a GPU."""

import gc
from itertools import count
from types import SimpleNamespace

import pytest
import torch

from rnnfuse.streams import PYTORCHS, OwnStream

DEVICE = torch.device("cpu")


@pytest.fixture(autouse=True)
def is_capturing(monkeypatch):
    gc.collect()
    turn, capturing = count(), []
    monkeypatch.setattr(
        torch.cuda, "Stream", lambda device: SimpleNamespace(device_index=0, cuda_stream=next(turn) % PYTORCHS)
    )
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: bool(capturing))
    return capturing


class Layer:
    """Garbage that only the collector finds, as layers are."""

    def __init__(self):
        self.itself, self.place = self, OwnStream(DEVICE)


def test_a_stream_is_given_once_and_who_has_none_of_his_own_is_told():
    held = [OwnStream(DEVICE) for _ in range(PYTORCHS + 8)]
    assert [one.is_alone for one in held] == [True] * PYTORCHS + [False] * 8
    assert len({one.stream.cuda_stream for one in held[:PYTORCHS]}) == PYTORCHS
    del held[PYTORCHS:]
    assert not OwnStream(DEVICE).is_alone  # the end of those that shared one frees nothing
    freed = held.pop().stream.cuda_stream
    assert OwnStream(DEVICE).stream.cuda_stream == freed


def test_streams_of_layers_that_nobody_has_are_given_again():
    gc.disable()
    try:
        assert all(Layer().place.is_alone for _ in range(3 * PYTORCHS))
    finally:
        gc.enable()


def test_nothing_is_collected_within_a_capture(is_capturing):
    gc.disable()
    try:
        for _ in range(PYTORCHS):
            Layer()
        is_capturing.append(True)
        assert not OwnStream(DEVICE).is_alone
        is_capturing.clear()
        assert OwnStream(DEVICE).is_alone
    finally:
        gc.enable()
