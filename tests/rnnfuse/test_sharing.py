"""Whether kernels of layers run at once or one after the other, by made-up times: there is no GPU."""

from types import SimpleNamespace

import pytest

from rnnfuse import ranges
from rnnfuse.persistent import choice, sharing
from rnnfuse.persistent.choice import Choice
from rnnfuse.persistent.kernel import Tile


def loops(count):
    plan = SimpleNamespace(kernels={})
    return [
        SimpleNamespace(shared_by=1, form="form", buffers=SimpleNamespace(plan=plan, rows=8, device=None))
        for _ in range(count)
    ]


SLOW, FAST = Tile(16, 32, 8, "ieee"), Tile(16, 16, 8, "ieee")  # of one block of 8 sequences, 20 and 40 programs


def taking(monkeypatch, fast, slow):
    """Microseconds of a step with each tile; None: it could not be compiled."""
    times = {tile: time for tile, time in ((FAST, fast), (SLOW, slow)) if time is not None}
    found = Choice(SimpleNamespace(units=640), "", times)
    monkeypatch.setattr(choice, "processors", lambda device: 60)
    monkeypatch.setattr(sharing, "range_length", lambda steps: 8)
    return found


@pytest.mark.parametrize(
    ("layers", "fast", "slow", "at_once"),
    [
        (3, 5.0, 6.0, True),  # 6 × 66 / 50 = 7.9 of 15
        (3, 5.0, 9.0, False),  # 11.9 of 15: products have less of the GPU, too
        (2, 5.0, 5.5, True),
        (2, 5.0, 6.0, False),
        (3, 5.0, None, False),  # three times 40 programs are more than 60
        (4, 5.0, 1.0, False),  # four times 20, too
        (1, 5.0, 6.0, False),
    ],
)
def test_layers_run_at_once_where_that_takes_much_less(monkeypatch, layers, fast, slow, at_once):
    found = taking(monkeypatch, fast, slow)
    some = loops(layers)
    assert sharing.share_gpu(some, [found] * layers, steps=50) == at_once
    assert {loop.shared_by for loop in some} == {layers if at_once else 1}
    assert found.fastest(some[0], some[0].shared_by) == (SLOW if at_once or layers == 4 else FAST)
    said = [one.said for one in some[0].buffers.plan.kernels.values()]
    assert len(said) == (layers in (2, 3) and slow is not None)
    assert all(("run at once:" in line) == at_once for line in said)


@pytest.mark.parametrize("at_once", [True, False])
def test_layers_that_share_the_gpu_are_a_wavefront(monkeypatch, at_once):
    ran = []
    layers = [SimpleNamespace(loop=loop, run=lambda start, stop: ran.append((start, stop))) for loop in loops(2)]
    monkeypatch.setattr(ranges, "begin", lambda layers: None)
    monkeypatch.setattr(ranges, "kernel_for", lambda loop: "a kernel")
    monkeypatch.setattr(ranges, "share_gpu", lambda loops, kernels, steps: at_once)
    monkeypatch.setattr(ranges, "run_wavefront", lambda runs, *_: ran.append(len(runs)))
    ranges.run_layers(layers, 50, False, "a device")
    assert ran == ([2] if at_once else [(0, 50), (0, 50)])
