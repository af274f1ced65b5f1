"""Whether kernels of layers run at once or one after the other, by made-up times: there is no GPU."""

from types import SimpleNamespace

import pytest

from rnnfuse import ranges
from rnnfuse.persistent import sharing
from rnnfuse.persistent.choice import Choice


def loops(count):
    plan = SimpleNamespace(kernels={})
    return [SimpleNamespace(shared_by=1, form="form", buffers=SimpleNamespace(plan=plan, rows=8)) for _ in range(count)]


def taking(monkeypatch, alone, on_a_part):
    """Microseconds of a step; None: it cannot be a kernel."""

    def kernel_for(loop):
        found = alone if loop.shared_by == 1 else on_a_part
        return None if found is None else Choice("kernel", "tile", "", found)

    monkeypatch.setattr(sharing, "kernel_for", kernel_for)


@pytest.mark.parametrize(
    ("layers", "alone", "on_a_part", "at_once"),
    [
        (3, 5.0, 7.0, True),  # 7 × 66 / 50 = 9.2 of 15
        (3, 5.0, 12.0, False),
        (2, 5.0, 8.0, False),  # 9.3 of 10 is as good as nothing
        (2, 5.0, 7.0, True),
        (3, 5.0, None, False),  # its weights do not fit on a part
        (1, 5.0, 1.0, False),
    ],
)
def test_layers_run_at_once_where_that_takes_less(monkeypatch, layers, alone, on_a_part, at_once):
    taking(monkeypatch, alone, on_a_part)
    found = loops(layers)
    assert sharing.share_gpu(found, steps=50, length=8) == at_once
    assert {loop.shared_by for loop in found} == {layers if at_once else 1}
    said = [one.said for one in found[0].buffers.plan.kernels.values()]
    assert len(said) == (layers > 1 and on_a_part is not None)
    assert all(("at once:" in line) == at_once for line in said)


@pytest.mark.parametrize("at_once", [True, False])
def test_layers_that_share_the_gpu_are_a_wavefront(monkeypatch, at_once):
    ran = []
    layers = [SimpleNamespace(loop=loop, run=lambda start, stop: ran.append((start, stop))) for loop in loops(2)]
    monkeypatch.setattr(ranges, "kernel_for", lambda loop: "a kernel")
    monkeypatch.setattr(ranges, "range_length", lambda steps: 8)
    monkeypatch.setattr(ranges, "share_gpu", lambda loops, steps, length: at_once)
    monkeypatch.setattr(ranges, "run_wavefront", lambda runs, *_: ran.append(len(runs)))
    ranges.run_layers(layers, 50, False, "a device")
    assert ran == ([2] if at_once else [(0, 50), (0, 50)])
