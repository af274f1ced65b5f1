"""On a GPU: graphs captured inside, layers as a wavefront, and a capture by the user. Skipped where there is none."""

import gc
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import replaying
import torch
from cells import FineLstm, GruBefore, LayerNormLstm, Peephole, SLstm, tame
from helpers import assert_same, gradients
from replaying import by_loops, replays
from torch import nn
from torch.nn import functional as F

import rnnfuse
from rnnfuse import streams, wavefront
from rnnfuse.calling import flatten_call, initial_state
from rnnfuse.loop import run_loop
from rnnfuse.private import flatten
from rnnfuse.streams import OwnStream

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")

CELLS = [FineLstm, GruBefore, LayerNormLstm, Peephole, SLstm]


doubles = partial(replaying.doubles, "cuda")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("steps", [3, 37])
def test_a_layer_is_the_loop_at_every_call(kind, steps):
    cell = kind(5, 8).double().cuda()
    layer = rnnfuse.Recurrent(cell)
    for batch in (6, 6, 3):
        xs = doubles(steps, batch, 5).requires_grad_()
        wanted = [xs, *cell.parameters()]
        outputs, ends = by_loops([cell], xs)
        expected = [outputs, *ends, *gradients(outputs, ends, wanted)]
        outputs, end = layer(xs)
        last = flatten(end)[0]
        assert_same(zip([outputs, *last, *gradients(outputs, last, wanted)], expected, strict=True))


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("with_lengths", [False, True])
def test_a_wavefront_is_one_layer_after_the_other(kind, with_lengths):
    cells = [kind(5 if k == 0 else 8, 8).double().cuda() for k in range(3)]
    stack = rnnfuse.Stack(cells)
    lengths = torch.tensor([29, 1, 17], device="cuda") if with_lengths else None
    for _ in range(2):
        xs = doubles(29, 3, 5).requires_grad_()
        wanted = [xs, *(one for cell in cells for one in cell.parameters())]
        outputs, ends = by_loops(cells, xs, lengths=lengths)
        expected = [outputs, *ends, *gradients(outputs, ends, wanted)]
        outputs, end = stack(xs, lengths=lengths)
        last = flatten(end)[0]
        assert_same(zip([outputs, *last, *gradients(outputs, last, wanted)], expected, strict=True))


def test_two_calls_before_their_gradients_do_not_disturb_each_other():
    cell = FineLstm(5, 8).double().cuda()
    layer = rnnfuse.Recurrent(cell)
    first, second = doubles(16, 4, 5), doubles(16, 4, 5)
    expected = [torch.autograd.grad(by_loops([cell], xs)[0].sum(), list(cell.parameters())) for xs in (first, second)]
    outputs = [layer(xs)[0] for xs in (first, second)]
    found = [torch.autograd.grad(ys.sum(), list(cell.parameters())) for ys in outputs]
    for pair in zip(found, expected, strict=True):
        assert_same(zip(*pair, strict=True))


def test_all_states_and_their_gradients():
    cell = FineLstm(5, 8).double().cuda()
    xs = doubles(21, 4, 5)
    _, _, expected = run_loop(cell, flatten_call(xs, initial_state(cell, xs[0]), {}, None))
    _, _, found = rnnfuse.Recurrent(cell)(xs, states=True)
    wanted = list(cell.parameters())
    one, other = (torch.autograd.grad((some[1] ** 2).sum() + some[0].sum(), wanted) for some in (found, expected))
    assert_same(zip([*found, *one], [*expected, *other], strict=True))


def test_new_weights_are_used_at_the_next_call():
    cell = FineLstm(5, 8).double().cuda()
    layer = rnnfuse.Recurrent(cell)
    xs = doubles(16, 4, 5)
    with torch.no_grad():
        layer(xs)
        for one in cell.parameters():
            one.mul_(2)
        assert torch.allclose(layer(xs)[0], by_loops([cell], xs)[0])


@pytest.mark.parametrize("kind", CELLS)
def test_a_whole_training_step_can_be_captured(kind):
    cells = [kind(5 if k == 0 else 8, 8).double().cuda() for k in range(2)]
    stack = rnnfuse.Stack(cells)
    parameters = [one for cell in cells for one in cell.parameters()]
    xs = doubles(20, 4, 5)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            torch.autograd.grad(stack(xs)[0].sum(), parameters)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            outputs = stack(xs)[0]
            found = torch.autograd.grad(outputs.sum(), parameters)
    torch.cuda.current_stream().wait_stream(side)
    xs.copy_(doubles(20, 4, 5))
    graph.replay()
    expected, _ = by_loops(cells, xs)
    wanted = torch.autograd.grad(expected.sum(), parameters)
    assert_same(zip([outputs, *found], [expected, *wanted], strict=True))


@pytest.mark.parametrize(("units", "rows"), [(64, 32), (256, 64)])
def test_graphs_of_layers_that_run_at_the_same_time_share_no_memory(units, rows):
    """Products as small as these are cut along what is added up, and cuBLAS keeps the parts in memory of a stream. With
    one stream for all graphs, a third of the calls of these cells had wrong gradients; an LSTM's had not."""
    cells = [tame(GruBefore(5 if k == 0 else units, units)).cuda() for k in range(3)]
    stack = rnnfuse.Stack(cells, persistent=False, replay=False)
    xs = torch.randn(50, rows, 5, device="cuda")
    parameters = list(stack.parameters())
    expected, _ = by_loops(cells, xs)
    wanted = torch.autograd.grad(expected.square().sum(), parameters)
    for _ in range(10):
        outputs = stack(xs)[0]
        found = torch.autograd.grad(outputs.square().sum(), parameters)
        assert_same(zip([outputs, *found], [expected, *wanted], strict=True), 1e-3)


def test_where_no_stream_can_be_made_steps_are_launched_one_by_one(monkeypatch):
    monkeypatch.setattr(streams, "made_by_driver", lambda device: None)
    monkeypatch.setattr(streams, "_unused", defaultdict(list))
    monkeypatch.setattr(wavefront, "_streams", {})
    cells = [tame(GruBefore(5 if k == 0 else 64, 64)).cuda() for k in range(3)]
    stack = rnnfuse.Stack(cells, persistent=False)
    parameters = list(stack.parameters())
    with pytest.warns(RuntimeWarning, match="made no stream"):
        stack(torch.randn(50, 32, 5, device="cuda"))
    for _ in range(8):
        xs = torch.randn(50, 32, 5, device="cuda")
        expected, _ = by_loops(cells, xs)
        wanted = torch.autograd.grad(expected.square().sum(), parameters)
        outputs = stack(xs)[0]
        found = torch.autograd.grad(outputs.square().sum(), parameters)
        assert_same(zip([outputs, *found], [expected, *wanted], strict=True), 1e-3)


def test_a_stream_of_captures_is_nobody_elses():
    own = [OwnStream(torch.device("cuda")) for _ in range(40)]
    assert all(one.is_alone for one in own)
    with ThreadPoolExecutor(1) as new_thread:  # it has asked nothing of the device yet
        own.append(new_thread.submit(OwnStream, torch.device("cuda")).result())
    assert own[-1].is_alone
    pytorchs = {torch.cuda.Stream().cuda_stream for _ in range(64)}
    handles = {one.stream.cuda_stream for one in own}
    assert len(handles) == len(own)
    assert not handles & pytorchs


def test_forty_layers_are_captured_in_one_process(recwarn):
    """More than PyTorch has streams. Each is replayed after three calls alike."""
    layers = [rnnfuse.Recurrent(FineLstm(5, 16).cuda(), persistent=False) for _ in range(40)]
    with torch.no_grad():
        for layer in layers:
            for _ in range(5):
                xs = torch.randn(20, 4, 5, device="cuda")
                expected, _ = by_loops([layer.cell], xs)
                assert_same([(layer(xs)[0], expected)], 1e-3)
    assert all(replays(layer) for layer in layers)
    assert not [one for one in recwarn if "stream" in str(one.message)]


def test_memory_is_at_most_1_3_times_cudnns():
    """What a language model needs at once, in a plain training loop."""

    def needed(make_stack):
        gc.collect()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        embedding, head = nn.Embedding(10_001, 128).cuda(), nn.Linear(256, 10_001).cuda()
        stack = make_stack().cuda()
        words = torch.randint(10_001, (50, 128), device="cuda")
        optimiser = torch.optim.Adam([*embedding.parameters(), *stack.parameters(), *head.parameters()])
        for _ in range(replaying.CALLS + 2):
            optimiser.zero_grad()
            F.cross_entropy(head(stack(embedding(words))[0]).flatten(0, 1), words.flatten()).backward()
            optimiser.step()
        return torch.cuda.max_memory_allocated() - before

    cells = [FineLstm(128 if k == 0 else 256, 256) for k in range(3)]
    assert needed(lambda: rnnfuse.Stack(cells)) <= 1.3 * needed(lambda: nn.LSTM(128, 256, 3))
