"""Calls that are replayed, without a GPU: in the place of a graph, a function runs again on the same memory."""

import gc
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import replay_checks
import torch
from cells import CELLS, Counter, Heads, OwnOutput
from helpers import assert_same
from replay_checks import ALL, WITH_A_CELL
from replaying import an_input, by_loops, replays, warmed

from rnnfuse import private, recorded, streams


class StandIn:
    """Computes the results of a function again, and writes them where they were the first time."""

    def __init__(self, plan, device):
        pass

    def record(self, function):
        found = function()

        def replay():
            for old, new in zip(found, function(), strict=True):
                if new is not None and old.data_ptr() != new.data_ptr():  # or else it lies there already
                    old.copy_(new)

        return found, replay


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setitem(recorded.RECORDERS, "cpu", StandIn)
    # Nothing is compiled: which operators run is tested elsewhere.
    monkeypatch.setattr(private, "compiled", lambda function, examples: lambda given: function(*given))


#: A chain hands its outputs on: they must be as wide as the inputs of the next. In a loop, a counter has no gradient.
CHAINED = [kind for kind in CELLS if kind not in (OwnOutput, Heads, Counter)]


@pytest.mark.parametrize("check", WITH_A_CELL, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", CHAINED)
def test_of_many_cells(check, kind):
    check("cpu", kind)


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.__name__)
def test_that(check):
    check("cpu")


def test_what_cannot_be_recorded_runs_as_before(monkeypatch, caplog):
    replay_checks.what_cannot_be_recorded_runs_as_before("cpu", monkeypatch, caplog)


def test_two_threads_use_one_layer():
    cell, layer = warmed("cpu")
    parameters = list(cell.parameters())

    def work(seed):
        for number in range(20):
            generator = torch.Generator().manual_seed(100 * seed + number)
            xs = torch.randn(9, 4, 5, dtype=torch.float64, generator=generator).requires_grad_()
            expected, _ = by_loops([cell], xs)
            wanted = torch.autograd.grad(expected.sum(), parameters)
            outputs, _ = layer(xs)
            found = torch.autograd.grad(outputs.sum(), parameters)
            assert_same(zip([outputs, *found], [expected, *wanted], strict=True))

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(work, range(3)))


def test_parameters_that_have_moved_meanwhile_are_noticed():
    """As where a parameter is spread over several GPUs and gathered again for the derivative."""
    cell, layer = warmed("cpu")
    parameters = list(cell.parameters())
    xs = an_input("cpu")
    expected = torch.autograd.grad(by_loops([cell], xs)[0].sum(), parameters)
    with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one.clone()):
        outputs, _ = layer(xs)
    assert_same(zip(torch.autograd.grad(outputs.sum(), parameters), expected, strict=True))
    assert replays(layer) == 0


# --- captures ---


PLACE = SimpleNamespace(stream="a stream")


def faked(monkeypatch, fails=False):
    """PyTorch's functions about streams and graphs; a list of what was called."""
    said = []

    @contextmanager
    def graph(graph, **options):
        said.append(options)
        yield
        if fails:
            raise RuntimeError("refused")

    @contextmanager
    def stream(stream):
        said.append("stream")
        yield
        said.append("stream back")  # not where the end of the capture failed

    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(private, "end_failed_capture", lambda *_: said.append("cleaned up"))
    return said


def test_no_garbage_is_collected_during_a_capture(monkeypatch):
    said = faked(monkeypatch)
    assert gc.isenabled()
    with streams.captured_on("a graph", PLACE, "a pool"):
        assert not gc.isenabled()
        assert streams.captures_on() is PLACE
    assert gc.isenabled()
    assert streams.captures_on() is None
    assert "cleaned up" not in said
    gc.disable()
    try:
        with streams.captured_on("a graph", PLACE, "a pool"):
            pass
        assert not gc.isenabled()  # as it was
    finally:
        gc.enable()


def test_a_capture_that_fails_leaves_nothing_behind(monkeypatch):
    said = faked(monkeypatch, fails=True)
    for _ in range(2):  # the lock is free again
        with pytest.raises(RuntimeError, match="refused"), streams.captured_on("a graph", PLACE, "a pool"):
            pass
    assert said.count("cleaned up") == 2
    assert gc.isenabled()
    assert streams.captures_on() is None


def test_work_is_stepwise_only_where_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    assert not streams.is_stepwise()
    with streams.stepwise():
        assert streams.is_stepwise()
    with pytest.raises(ValueError, match="not today"), streams.stepwise():
        replay_checks.failing()
    assert not streams.is_stepwise()
