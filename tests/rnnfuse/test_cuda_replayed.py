"""Calls that are replayed as CUDA graphs on a real GPU. Skipped where there is none."""

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
import replay_checks
import torch
from cells import FineLstm, GruBefore, LayerNormLstm, Peephole, SLstm, tame
from helpers import assert_same, gradients
from replay_checks import ALL, WITH_A_CELL
from replaying import CALLS, an_input, by_loops, change, compare, doubles, replays, three_cells, warmed

import rnnfuse
from rnnfuse import passes, recorded
from rnnfuse.persistent import choice
from rnnfuse.private import flatten

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")

CELLS = [FineLstm, GruBefore, LayerNormLstm, Peephole, SLstm]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    gc.collect()  # a layer's streams are free for the next test


@pytest.mark.parametrize("check", WITH_A_CELL, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", CELLS)
def test_of_many_cells(check, kind):
    check("cuda", kind)


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.__name__)
def test_that(check):
    check("cuda")


@pytest.mark.parametrize("kind", CELLS)
def test_loops_that_are_one_kernel(kind, monkeypatch):
    monkeypatch.setattr(choice, "GRIDS", 1)  # one tile is enough to be right
    cells = [tame(kind(5 if k == 0 else 64, 64)).cuda() for k in range(3)]
    stacks = [rnnfuse.Stack(cells, persistent=True, replay=replay) for replay in (True, False)]
    parameters = [one for cell in cells for one in cell.parameters()]
    for _ in range(CALLS + 4):
        xs, results = torch.randn(30, 32, 5, device="cuda"), []
        for stack in stacks:
            outputs, ends = stack(xs)
            last = flatten(ends)[0]
            results.append([outputs, *last, *gradients(outputs, last, parameters)])
        assert_same(zip(*results, strict=True), 1e-3)
        change(cells)
    assert replays(stacks[0]) == 1
    assert "is one kernel, as asked for" in stacks[0].explain()


def test_both_directions():
    cells = [[FineLstm(5 if k == 0 else 16, 8).double().cuda() for _ in range(2)] for k in range(2)]
    stacks = [rnnfuse.Stack(cells, bidirectional=True, replay=replay) for replay in (True, False)]
    parameters = list(stacks[0].parameters())
    for _ in range(CALLS + 4):
        xs = doubles("cuda", 21, 4, 5)
        results = [[one := stack(xs)[0], *gradients(one, [], parameters)] for stack in stacks]
        assert_same(zip(*results, strict=True))
    assert replays(stacks[0]) == 4


def small_products():
    """cuBLAS cuts products as small as these along what is added up, and keeps the parts in memory of a stream."""
    cells = [tame(GruBefore(5 if k == 0 else 64, 64)).cuda() for k in range(3)]
    return cells, rnnfuse.Stack(cells, persistent=False)


def test_replays_on_two_streams_at_the_same_time_share_no_memory():
    cells, stack = small_products()
    parameters = list(stack.parameters())
    xs = [torch.randn(50, 32, 5, device="cuda") for _ in range(2)]
    expected = [by_loops(cells, one)[0] for one in xs]
    wanted = [[ys, *torch.autograd.grad(ys.square().sum(), parameters)] for ys in expected]
    streams = [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    found = []
    for _ in range(CALLS + 10):
        for number, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                outputs = stack(xs[number])[0]
                found.append((number, [outputs, *torch.autograd.grad(outputs.square().sum(), parameters)]))
    torch.cuda.synchronize()
    assert replays(stack) == 2
    for number, some in found:
        assert_same(zip(some, wanted[number], strict=True), 1e-3)


def test_layers_of_two_chains_on_one_stream():
    """One ends before the other: what cuBLAS needs must not end with it."""
    cells, stack = small_products()
    others, other = small_products()
    for _ in range(CALLS + 2):
        for some, one in ((cells, stack), (others, other)):
            compare(one, some, torch.randn(50, 32, 5, device="cuda"), tolerance=1e-3)
    assert replays(stack) == replays(other) == 1
    del stack, cells, some, one
    gc.collect()
    torch.cuda.empty_cache()
    for _ in range(5):
        compare(other, others, torch.randn(50, 32, 5, device="cuda"), tolerance=1e-3)
        torch.randn(10_000_000, device="cuda")  # takes memory that was given back
    assert replays(other) == 1


@pytest.mark.parametrize("own_streams", [False, True])
def test_two_threads_use_one_layer(own_streams):
    cell, layer = warmed("cuda")
    parameters = list(cell.parameters())
    calls = {}
    for seed in range(2):  # no random numbers are drawn in a thread: PyTorch forbids it while another one captures
        inputs = [an_input("cuda") for _ in range(12)]
        expected = [by_loops([cell], xs)[0] for xs in inputs]
        calls[seed] = [
            (xs, [ys, *torch.autograd.grad(ys.sum(), parameters)]) for xs, ys in zip(inputs, expected, strict=True)
        ]
    torch.cuda.synchronize()

    def work(seed):
        stream = torch.cuda.Stream() if own_streams else torch.cuda.current_stream()
        with torch.cuda.stream(stream):
            for xs, wanted in calls[seed]:
                outputs, _ = layer(xs)
                found = torch.autograd.grad(outputs.sum(), parameters)
                assert_same(zip([outputs, *found], wanted, strict=True))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(work, range(2)))


def test_a_user_captures_what_was_replayed_before():
    cells = three_cells("cuda")
    stack = rnnfuse.Stack(cells)
    parameters = list(stack.parameters())
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(CALLS + 2):
            compare(stack, cells, doubles("cuda", 20, 4, 5))
        assert replays(stack) == 1
        xs = doubles("cuda", 20, 4, 5)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            outputs = stack(xs)[0]
            found = torch.autograd.grad(outputs.sum(), parameters)
        for _ in range(3):
            xs.copy_(doubles("cuda", 20, 4, 5))
            compare(stack, cells, doubles("cuda", 20, 4, 5))  # replayed in between
            graph.replay()
            expected, _ = by_loops(cells, xs)
            wanted = torch.autograd.grad(expected.sum(), parameters)
            assert_same(zip([outputs, *found], [expected, *wanted], strict=True))
            change(cells)
    assert replays(stack) == 1
    torch.cuda.synchronize()


def test_a_derivative_inside_of_a_users_capture():
    """Of a call before it."""
    cell, layer = warmed("cuda")
    parameters = list(cell.parameters())
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(CALLS + 1):
            compare(layer, [cell], an_input("cuda"))
        assert replays(layer) == 2
        xs = an_input("cuda")
        outputs, _ = layer(xs)
        gradient = torch.ones_like(outputs)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            found = torch.autograd.grad(outputs, parameters, gradient)
        graph.replay()
        wanted = torch.autograd.grad(by_loops([cell], xs)[0].sum(), parameters)
        assert_same(zip(found, wanted, strict=True))
    torch.cuda.synchronize()


def test_what_cannot_be_recorded_runs_as_before(monkeypatch, caplog):
    replay_checks.what_cannot_be_recorded_runs_as_before("cuda", monkeypatch, caplog)


def refused(found):
    """The host cannot wait for a GPU that does nothing but take notes."""
    return found[0].sum().item()


def mistaken(found):
    raise ValueError("not today")


@pytest.mark.parametrize("fault", [refused, mistaken])
@pytest.mark.parametrize("place", ["the derivative", "a layer in the middle"])
def test_a_capture_that_fails_leaves_nothing_behind(fault, place, monkeypatch):
    def failing(function):
        def call(*given):
            found = function(*given)
            if torch.cuda.is_current_stream_capturing():
                fault(found or [torch.ones(3, device="cuda")])
            return found

        return call

    if place == "the derivative":
        monkeypatch.setattr(recorded, "run_backward", failing(recorded.run_backward))
    else:
        monkeypatch.setattr(passes, "run_range", failing(passes.run_range))
    cells = three_cells("cuda")
    stack = rnnfuse.Stack(cells)
    stream = torch.cuda.current_stream()
    for _ in range(CALLS + 2):
        compare(stack, cells, doubles("cuda", 20, 4, 5))  # which draws random numbers
    assert replays(stack) == 0
    assert torch.cuda.current_stream() == stream
    assert not torch.cuda.is_current_stream_capturing()
    assert gc.isenabled()
    monkeypatch.undo()
    _, layer = warmed("cuda")  # others can be recorded
    assert replays(layer) == 1


def test_memory_is_given_back_with_the_layer():
    def allocated():
        gc.collect()
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated()

    before = allocated()
    layer = rnnfuse.Recurrent(FineLstm(64, 512).cuda(), persistent=False)
    for _ in range(CALLS + 2):
        layer(torch.randn(128, 512, 64, device="cuda"))[0].sum().backward()
    assert replays(layer) == 1
    held = allocated() - before
    assert held > 500e6  # what the derivative needs of 128 steps
    del layer
    assert allocated() - before < held / 3  # cuBLAS keeps some memory for each stream


def test_a_training_loop_finds_what_the_loop_finds():
    results = []
    for make in (lambda cells: rnnfuse.Stack(cells), lambda cells: lambda xs: by_loops(cells, xs)):
        torch.manual_seed(1)
        cells = three_cells("cuda")
        call, parameters = make(cells), [one for cell in cells for one in cell.parameters()]
        optimiser = torch.optim.Adam(parameters, lr=0.01)
        for _ in range(20):
            optimiser.zero_grad()
            loss = call(doubles("cuda", 12, 4, 5))[0].square().mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 0.1)
            optimiser.step()
        results.append([loss.detach(), *[one.detach() for one in parameters]])
    assert_same(zip(*results, strict=True), 1e-8)
