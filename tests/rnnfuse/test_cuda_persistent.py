"""Loops as one kernel on a real GPU, where programs do run at the same time. Skipped where there is none."""

import os
import time

import pytest
import torch
from cells import FineLstm, GruBefore, LayerNormLstm, NormedRnn, Peephole, Random, SLstm, tame
from helpers import assert_same, check_unbounded_states, gradients
from replaying import replays

import rnnfuse
from rnnfuse.calling import flatten_call, initial_state
from rnnfuse.loop import run_loop
from rnnfuse.persistent import choice, sharing
from rnnfuse.private import flatten

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")

CELLS = [FineLstm, GruBefore, LayerNormLstm, NormedRnn, Peephole, SLstm]
PATIENCE = 60.0
#: A layer norm divides by small numbers.
EXACT = {kind: 1e-3 if kind in (LayerNormLstm, NormedRnn) else 1e-4 for kind in CELLS}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False


@pytest.fixture(autouse=True)
def quickly(monkeypatch, request):
    """One tile is enough to be right."""
    if request.function is not test_measured_and_chosen:
        monkeypatch.setattr(choice, "GRIDS", 1)


@pytest.fixture(autouse=True)
def watchdog():
    """A program that waits forever cannot be stopped from within: the whole process ends, and says so."""
    yield
    done = torch.cuda.Event()
    done.record()
    end = time.monotonic() + PATIENCE
    while not done.query():
        if time.monotonic() > end:
            print("a kernel does not end", flush=True)
            os._exit(1)
        time.sleep(0.01)


def compare(cell, xs, lengths=None, tolerance=2e-5, calls=2, **options):
    """A layer beside the loop in float64, at several calls with numbers of their own."""
    exact = _doubled(cell)
    layer = rnnfuse.Recurrent(cell, **{"persistent": True, **options})
    for _ in range(calls):
        inside = None if lengths is None else torch.arange(len(xs), device="cuda")[:, None] < lengths[None]
        xs = torch.randn_like(xs)
        wide = xs.double().requires_grad_()
        call = flatten_call(wide, initial_state(exact, wide[0]), {}, inside)
        outputs, last, _ = run_loop(exact, call, options.get("reverse", False))
        expected = [outputs, *last, *gradients(outputs, last, [wide, *exact.parameters()])]
        own = xs.detach().requires_grad_()
        outputs, end = layer(own, None, lengths)
        last = flatten(end)[0]
        found = [outputs, *last, *gradients(outputs, last, [own, *cell.parameters()])]
        pairs = [(None if a is None else a.double(), b) for a, b in zip(found, expected, strict=True)]
        assert_same(pairs, tolerance)
    return layer


def _doubled(cell):
    import copy

    return copy.deepcopy(cell).double()


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize(("batch", "units"), [(6, 16), (19, 40), (64, 320), (128, 256)])
def test_a_kernel_is_the_loop(kind, batch, units):
    layer = compare(tame(kind(5, units)).cuda(), torch.randn(37, batch, 5, device="cuda"), tolerance=EXACT[kind])
    assert layer.explain().count("is one kernel, as asked for") == 2, layer.explain()


@pytest.mark.parametrize("kind", CELLS)
def test_kernels_in_calls_that_are_replayed(kind):
    layer = compare(tame(kind(5, 64)).cuda(), torch.randn(37, 32, 5, device="cuda"), tolerance=EXACT[kind], calls=8)
    assert layer.explain().count("is one kernel, as asked for") == 2, layer.explain()
    assert replays(layer) == 1


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("reverse", [False, True])
def test_lengths_and_directions(kind, reverse):
    lengths = torch.tensor([29, 1, 17], device="cuda")
    compare(tame(kind(5, 48)).cuda(), torch.randn(29, 3, 5, device="cuda"), lengths, EXACT[kind], reverse=reverse)


def test_measured_and_chosen():
    cell = tame(FineLstm(123, 256)).cuda()
    layer = compare(cell, torch.randn(100, 64, 123, device="cuda"), persistent=None, tolerance=1e-4)
    assert "µs a step" in layer.explain()
    print(layer.explain())


def test_cells_made_at_random():
    for seed in range(20):
        torch.manual_seed(seed)
        compare(Random(seed, 5, 32).cuda(), torch.randn(9, 5, 5, device="cuda"), tolerance=1e-3, calls=1)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("kind", CELLS)
def test_layers_of_kernels_at_once_or_one_after_the_other(monkeypatch, kind, at_once):
    monkeypatch.setattr(sharing, "GAIN", 100.0 if at_once else 0.0)
    cells = [tame(kind(5 if k == 0 else 64, 64)).cuda() for k in range(3)]
    stack, others = rnnfuse.Stack(cells, persistent=True), rnnfuse.Stack(cells, persistent=False)
    xs = torch.randn(50, 32, 5, device="cuda")
    parameters = [one for cell in cells for one in cell.parameters()]
    results = []
    for one in (stack, others):
        outputs, ends = one(xs)
        last = flatten(ends)[0]
        results.append([outputs, *last, *gradients(outputs, last, parameters)])
    assert_same(zip(*results, strict=True), EXACT[kind])
    assert stack.explain().count(f"layers run {'at once' if at_once else 'one after the other'}:") == 2


@pytest.mark.parametrize("units", [64, 320])
def test_both_directions_at_the_same_time(units):
    """Their programs may be more than there are multiprocessors: one kernel waits for the other as a whole."""
    cells = [[tame(FineLstm(5 if k == 0 else 2 * units, units)).cuda() for _ in range(2)] for k in range(2)]
    stack = rnnfuse.Stack(cells, bidirectional=True, persistent=True)
    other = rnnfuse.Stack(cells, bidirectional=True, persistent=False)
    xs = torch.randn(40, 64, 5, device="cuda")
    parameters = list(stack.parameters())
    results = [gradients(one(xs)[0], [], parameters) for one in (stack, other)]
    assert_same(zip(*results, strict=True), 1e-4)


def test_captured_by_the_user():
    cell = FineLstm(5, 64).cuda()
    layer = rnnfuse.Recurrent(cell, persistent=True)
    xs = torch.randn(20, 8, 5, device="cuda")
    torch.cuda.set_stream(torch.cuda.Stream())

    def step():
        for parameter in cell.parameters():
            parameter.grad = None
        layer(xs)[0].square().sum().backward()

    for _ in range(3):
        step()
    expected = [parameter.grad.clone() for parameter in cell.parameters()]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        step()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert_same(zip([parameter.grad for parameter in cell.parameters()], expected, strict=True), 1e-5)


def test_autocast():
    """Weights of float32, products of bfloat16."""
    cell = tame(FineLstm(64, 64)).cuda()
    layer = rnnfuse.Recurrent(cell, persistent=True)
    other = rnnfuse.Recurrent(cell, persistent=False)
    xs = torch.randn(30, 16, 64, device="cuda")
    results = []
    for one in (layer, other):
        with torch.autocast("cuda", torch.bfloat16):
            outputs, _ = one(xs)
        results.append([outputs, *gradients(outputs, [], list(cell.parameters()))])
    assert_same(zip(*results, strict=True), 2e-2)
    assert layer.explain().count("is one kernel") == 2


def test_a_left_side_without_room_for_all_of_it():
    """Backwards, 64 sequences of 4,096 numbers in bfloat16 are more than a multiprocessor holds."""
    cell = tame(FineLstm(64, 1024)).cuda().to(torch.bfloat16)
    xs = torch.randn(12, 64, 64, device="cuda", dtype=torch.bfloat16)
    layer = compare(cell, xs, tolerance=0.1, calls=1)
    assert layer.explain().count("is one kernel") == 2


@pytest.mark.parametrize("warps", [choice.WARPS, 32])  # so many that each has a part of the left side
def test_what_is_infinite_stays_so_and_what_is_no_number_too(monkeypatch, warps):
    monkeypatch.setattr(choice, "WARPS", warps)
    check_unbounded_states(FineLstm(5, 40).cuda(), persistent=True)


def test_tf32():
    torch.backends.cuda.matmul.allow_tf32 = True
    layer = compare(tame(FineLstm(5, 64)).cuda(), torch.randn(30, 16, 5, device="cuda"), tolerance=1e-2)
    assert "is one kernel" in layer.explain()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype):
    cell = tame(FineLstm(5, 64)).cuda().to(dtype)
    layer = compare(cell, torch.randn(12, 16, 5, device="cuda", dtype=dtype), tolerance=0.1, calls=1)
    assert "is one kernel" in layer.explain()


def test_float64_runs_as_before():
    layer = compare(FineLstm(5, 16).double().cuda(), torch.randn(7, 3, 5, device="cuda", dtype=torch.float64))
    assert "is not one kernel" in layer.explain()
