"""Whether a loop runs as one kernel, and with which tile, by made-up times: there is no GPU."""

import gc
import weakref
from types import SimpleNamespace

import pytest
import torch
from cells import FineLstm
from helpers import plan_of

import rnnfuse
from rnnfuse import private
from rnnfuse.buffers import Buffers
from rnnfuse.loops import Loop
from rnnfuse.persistent import choice
from rnnfuse.persistent.kernel import Tile
from rnnfuse.persistent.text import Inexpressible

ORDINARY = 10.0


class MadeUp:
    """A loop of 320 units over 64 sequences; what is measured takes as long as it is told, by the units of a tile."""

    def __init__(self, monkeypatch):
        self.times, self.kept, self.is_alone, self.inexpressible = {16: 5.0, 32: 7.0}, {}, True, ""
        plan = SimpleNamespace(backward_loops=())
        constant = {"weights": torch.zeros(320, 1280), "of a norm": torch.zeros(1280, 320)}
        buffers = SimpleNamespace(plan=plan, rows=64, device=None, constant=constant)
        self.loop = SimpleNamespace(buffers=buffers, form="form", persistent=None, shared_by=1)
        # What a loop needs that is no kernel, and what a trial is given besides.
        self.trial_buffers = SimpleNamespace(
            constant={"weights": None}, series={"state": "memory"}, reserve=lambda node: self.reserved.append(node)
        )
        self.reserved, self.ahead = [], []
        trial = SimpleNamespace(buffers=self.trial_buffers)
        self.kernel = SimpleNamespace(
            units=320, source="source", barriers=1, run=self.run, launch=self.run,
            needs={"of a norm", "state", "normalised"}, multiply_ahead=lambda *given: self.ahead.append(given),
            weight_bytes=lambda tile: 0, runs_with_fewer_warps=lambda tile: self.few_warps,
        )  # fmt: skip
        self.few_warps = True
        self.ran = []
        for name, made_up in {
            "_kernel": self.kernel_of,
            "processors": lambda device: 132,
            "OwnStream": lambda device: SimpleNamespace(is_alone=self.is_alone, stream="stream"),
            "captured_like": lambda *given: SimpleNamespace(loop=trial, replay="the ordinary loop"),
            "microseconds": self.ordinary,
            "microseconds_captured": self.timed,
        }.items():
            monkeypatch.setattr(choice, name, made_up)
        monkeypatch.setattr(private, "remembered", self.kept.get)
        monkeypatch.setattr(private, "remember", self.kept.__setitem__)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")
        monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: "pool")

    def kernel_of(self, loop):
        if self.inexpressible:
            raise Inexpressible(self.inexpressible)
        return self.kernel

    def run(self, loop, start, stop, tile):
        self.ran.append(tile)

    def ordinary(self, call):
        assert call == "the ordinary loop"
        return ORDINARY * choice.STEPS

    def timed(self, call, place):
        call()
        took = self.times[self.ran[-1].units]
        if took is None:
            raise RuntimeError("out of resources")
        return took * choice.STEPS

    def choose(self):
        return choice._choose(self.loop)


@pytest.fixture
def made_up(monkeypatch):
    return MadeUp(monkeypatch)


def test_the_fastest_tile_is_taken_and_remembered(made_up):
    found = made_up.choose()
    assert found.said.startswith(
        "the loop is one kernel: 5.0 µs a step as one kernel, 10.0 otherwise (4 × 20 programs of 16"
    )
    assert {tile.units: time for tile, time in found.times.items()} == made_up.times
    assert all(isinstance(tile, Tile) for tile in found.times)
    made_up.ran.clear()
    again = made_up.choose()
    assert again == found
    assert made_up.ran == []  # not timed again
    again.run(made_up.loop, 0, 7)
    assert [tile.units for tile in made_up.ran] == [16]


def test_a_trial_has_what_is_multiplied_before_a_kernel_starts_which_is_not_timed(made_up):
    made_up.choose()
    assert made_up.trial_buffers.constant == made_up.loop.buffers.constant
    assert made_up.reserved == ["normalised"]
    assert [given[1:] for given in made_up.ahead] == [(0, choice.STEPS)]
    assert len(made_up.ran) == 3  # tiles


def test_where_loops_share_the_gpu_only_tiles_that_fit_count(made_up):
    found = made_up.choose()
    # 64 sequences are 4 blocks: 80 programs of 16 units, with 8 warps or 4, or 40 of 32
    assert [(tile.units, tile.warps) for tile in found.times] == [(16, 8), (16, 4), (32, 8)]
    fastest = [found.fastest(made_up.loop, count) for count in (1, 2, 3, 4)]
    assert [tile and tile.units for tile in fastest] == [16, 32, 32, None]


def test_fewer_warps_are_tried_only_where_they_have_registers_enough(made_up):
    made_up.few_warps = False
    assert {tile.warps for tile in made_up.choose().times} == {8}


@pytest.mark.parametrize(
    ("times", "persistent", "said"),
    [
        (
            {16: 9.8, 32: 20.0},
            None,
            "the loop is not one kernel: it takes 9.8 µs a step as one kernel, 10.0 otherwise",
        ),
        ({16: 9.8, 32: 20.0}, True, "the loop is one kernel, as asked for: 9.8 µs"),
        ({16: None, 32: None}, True, "the loop is not one kernel: none could be compiled"),
    ],
)
def test_what_was_found_is_said(made_up, times, persistent, said):
    made_up.times, made_up.loop.persistent = times, persistent
    found = made_up.choose()
    assert found.said.startswith(said)
    assert (found.kernel is None) == ("not one kernel" in said)


def test_why_there_is_none_is_said(made_up):
    made_up.is_alone = False
    assert "the driver has made no stream, so that it could not be measured" in made_up.choose().said
    assert made_up.kept == {}  # the next may have more luck
    made_up.kernel.weight_bytes = lambda tile: choice.MOST_BYTES + 1
    assert "its weights do not fit" in made_up.choose().said
    made_up.inexpressible = "it has fewer than 16 units"
    assert made_up.choose().said == "the loop is not one kernel: it has fewer than 16 units"


def test_why_there_is_no_kernel_holds_nothing_of_the_call():
    """An error that is kept holds the frames of all who were called, and with them the first call's whole graph."""
    layer = rnnfuse.Recurrent(FineLstm(3, 4), compile=False)
    layer(torch.randn(6, 5, 3))
    plan = plan_of(layer)
    loop = Loop(plan.forward_loop(False, False, False), Buffers(plan, 6, 5, torch.device("cpu")), compile=True)
    for _ in range(2):
        with pytest.raises(Inexpressible, match="fewer than 16 units"):
            choice._kernel(loop)
    gone = weakref.ref(loop)
    del loop
    gc.collect()
    assert gone() is None
