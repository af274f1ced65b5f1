"""What a loop can do, a layer can do: states, lengths, dropout, precision, derivatives of every kind, and company."""

import copy
import io
import os
import pickle
import subprocess
import sys

import pytest
import torch
from cells import Dropping, FineLstm, GruBefore, LayerNormLstm, SLstm
from helpers import assert_same, both, doubles, plain_loop, plan_of
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import rnnfuse
from rnnfuse import private
from rnnfuse.passes import copied_together


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


# --- what comes out ---


def test_all_states_and_their_gradients():
    cell = FineLstm(3, 4).double()
    layer = rnnfuse.Recurrent(cell, compile=False)
    xs = doubles(6, 5, 3)
    ys, _, states = layer(xs, states=True)
    h, c = cell.initial_state(xs[0])
    for t in range(6):
        h, c = cell(xs[t], (h, c))
        assert torch.allclose(states[0][t], h)
        assert torch.allclose(states[1][t], c)
    weight = doubles(6, 5, 4)
    found = torch.autograd.grad((states[1] * weight).sum() + ys.sum(), list(cell.parameters()))
    h, c = cell.initial_state(xs[0])
    total = 0
    for t in range(6):
        h, c = cell(xs[t], (h, c))
        total = total + (c * weight[t]).sum() + h.sum()
    assert_same(zip(found, torch.autograd.grad(total, list(cell.parameters())), strict=True))


def test_batch_first_and_inputs_that_are_not_contiguous():
    layer = rnnfuse.Recurrent(GruBefore(3, 4).double(), compile=False)
    xs = doubles(6, 5, 3)
    other = rnnfuse.Recurrent(layer.cell, batch_first=True, compile=False)
    assert torch.allclose(layer(xs)[0], other(xs.transpose(0, 1))[0].transpose(0, 1))
    wide = doubles(6, 5, 6)[:, :, ::2]
    assert torch.allclose(layer(wide)[0], layer(wide.contiguous())[0])


def test_one_step_one_sequence_and_no_sequence():
    layer = rnnfuse.Recurrent(GruBefore(3, 4))
    assert layer(torch.randn(1, 1, 3))[0].shape == (1, 1, 4)
    ys, last = layer(torch.randn(5, 0, 3))
    assert (ys.shape, last.shape) == ((5, 0, 4), (0, 4))


def test_layers_and_directions():
    cells = [(FineLstm(3, 4), FineLstm(3, 4)), (FineLstm(8, 4), FineLstm(8, 4))]
    stack = rnnfuse.Stack(cells, bidirectional=True, compile=False)
    ys, last = stack(torch.randn(6, 5, 3), lengths=torch.tensor([6, 2, 3, 1, 6]))
    assert ys.shape == (6, 5, 8)
    assert len(last) == 4
    assert not ys[2:, 1].any()


def test_a_stack_of_pytorchs_cells_is_nn_lstm():
    lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True).double()
    cells = []
    for layer in range(2):
        pair = []
        for ending in ("", "_reverse"):
            cell = nn.LSTMCell(3 if layer == 0 else 8, 4).double()
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(cell, name).data = getattr(lstm, f"{name}_l{layer}{ending}").data
            pair.append(cell)
        cells.append(tuple(pair))
    xs = doubles(6, 5, 3)
    assert torch.allclose(rnnfuse.Stack(cells, bidirectional=True, compile=False)(xs)[0], lstm(xs)[0])


def test_the_state_dict_is_the_cells_own():
    cell = FineLstm(3, 4)
    layer = rnnfuse.Recurrent(cell)
    assert {name.removeprefix("cell.") for name in layer.state_dict()} == set(cell.state_dict())


# --- precision and modes ---


@pytest.mark.parametrize("kind", [FineLstm, LayerNormLstm, SLstm])
def test_autocast_in_bf16_is_the_loops(kind):
    cell = kind(8, 16)
    with torch.autocast("cpu", torch.bfloat16):
        _, pairs = both(cell, torch.randn(6, 5, 8), compile=False)
    assert_same(pairs, tolerance=0.1)
    assert any(float((found - expected).abs().max()) < 0.05 for found, expected in pairs if found is not None)


def test_nothing_is_kept_without_gradients():
    layer = rnnfuse.Recurrent(FineLstm(3, 4))
    with torch.no_grad():
        ys, _ = layer(torch.randn(6, 5, 3))
    assert not ys.requires_grad
    with torch.inference_mode():
        assert layer(torch.randn(6, 5, 3))[0].shape == (6, 5, 4)


@pytest.mark.parametrize("compile", [False, True])
def test_a_first_call_in_inference_mode_leaves_gradients_to_later_ones(compile):
    """What is traced there has none: in PyTorch 2.9 every later gradient was None, without a word."""
    cell = FineLstm(3, 4).double()
    layer = rnnfuse.Recurrent(cell, compile=compile)
    xs, lengths = doubles(6, 5, 3), torch.tensor([6, 5, 1, 2, 3])
    with torch.inference_mode():
        layer(xs.clone(), None, lengths.clone())
        layer(xs.clone())
    for some in (None, lengths):
        found = torch.autograd.grad(layer(xs, None, some)[0].sum(), list(cell.parameters()))
        expected = torch.autograd.grad(
            rnnfuse.Recurrent(cell, compile=False)(xs, None, some)[0].sum(), list(cell.parameters())
        )
        assert_same(zip(found, expected, strict=True))


def test_frozen_parameters_get_no_gradient():
    cell = FineLstm(3, 4).double()
    cell.ui.requires_grad_(False)
    _, pairs = both(cell, doubles(6, 5, 3), compile=False)
    assert_same(pairs)


class Copies(TorchDispatchMode):
    """The shapes of what is copied."""

    def __init__(self):
        super().__init__()
        self.shapes = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        if function in (torch.ops.aten.copy_.default, torch.ops.aten.clone.default):
            self.shapes.append(tuple(found.shape))
        return found


def test_gradients_that_lie_side_by_side_are_copied_at_once():
    """Those of eight weights by two copies. Each has memory like its weight's then, so that autograd copies none."""
    cell = FineLstm(3, 4)
    ys, _ = rnnfuse.Recurrent(cell, compile=False)(torch.randn(2, 5, 3))
    with Copies() as copies:
        ys.backward(torch.ones_like(ys))
    assert sorted(one for one in copies.shapes if one[-2:] in ((3, 4), (4, 4))) == [(4, 3, 4), (4, 4, 4)]
    assert all(one.grad.stride() == one.stride() for one in cell.parameters())


def test_what_is_copied_together():
    wide, other = torch.randn(5, 12), torch.randn(5, 12)
    alike = [wide[:, 8:12], wide[:, :4], None, wide[:, 4:8]]
    alone = [wide[:, 2:4], wide[0], other[:, :4].t(), other[:, 1:5].t(), other[:, 7:11].t()]
    found = copied_together([*alike, *alone])
    assert all(one is None if given is None else one.equal(given) for one, given in zip(found, alike, strict=False))
    assert all(one.is_contiguous() for one in found[:4] if one is not None)
    assert len({one.untyped_storage().data_ptr() for one in found[:4] if one is not None} - {wide.data_ptr()}) == 1
    assert all(one is given for one, given in zip(found[4:], alone, strict=True))  # one by itself, and odd distances


def test_dropout_has_its_own_mask_each_step_and_is_repeatable():
    layer = rnnfuse.Recurrent(Dropping(), compile=False)
    xs = torch.ones(50, 40, 3)

    def run():
        torch.manual_seed(3)
        ys, _ = layer(xs)
        (gradient,) = torch.autograd.grad(ys.sum(), layer.cell.step.weight)
        return ys, gradient

    (ys, gradient), (again, gradient_again) = run(), run()
    assert torch.equal(ys, again)
    assert torch.equal(gradient, gradient_again)
    assert len({tuple(one.tolist()) for one in ys[1:, :, 0].detach()}) > 40  # not the same mask again and again
    assert not torch.equal(layer(xs)[0], ys)
    layer.eval()
    assert torch.equal(layer(xs)[0], layer(xs)[0])
    assert len(layer._plans) == 2
    # The gradient is that of the masks that were drawn: by a small change of the weight, with the same seed.
    layer.train()
    step = 1e-3 * torch.randn_like(layer.cell.step.weight)
    before = run()[0].sum()
    layer.cell.step.weight.data += step
    after = run()[0].sum()
    layer.cell.step.weight.data -= 2 * step
    assert float((after - run()[0].sum()) / 2) == pytest.approx(float((gradient * step).sum()), rel=0.02)
    assert before.isfinite()


# --- other derivatives ---


def test_the_derivative_of_a_derivative_is_the_loops():
    cell = GruBefore(3, 4).double()
    layer = rnnfuse.Recurrent(cell, compile=False)
    xs = doubles(4, 3, 3).requires_grad_()

    def second(run):
        ys = run(xs)
        (first,) = torch.autograd.grad((ys**2).sum(), xs, create_graph=True)
        return torch.autograd.grad((first**2).sum(), [xs, *cell.parameters()])

    assert_same(zip(second(lambda xs: layer(xs)[0]), second(lambda xs: plain_loop(cell, xs)), strict=True))


def test_forward_mode_and_torch_func_run_the_loop():
    cell = GruBefore(3, 4).double()
    layer = rnnfuse.Recurrent(cell, compile=False)
    xs, tangent = doubles(4, 3, 3), doubles(4, 3, 3)
    _, forward = torch.func.jvp(lambda xs: layer(xs)[0], (xs,), (tangent,))
    weight = doubles(4, 3, 4)
    inputs = xs.clone().requires_grad_()
    (backward,) = torch.autograd.grad((layer(inputs)[0] * weight).sum(), inputs)
    assert float((forward * weight).sum()) == pytest.approx(float((backward * tangent).sum()))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(xs, tangent)
        assert torch.allclose(torch.autograd.forward_ad.unpack_dual(layer(dual)[0]).tangent, forward)


# --- in company ---


def test_checkpointing():
    layer = rnnfuse.Recurrent(FineLstm(3, 4).double(), compile=False)
    xs = doubles(6, 5, 3).requires_grad_()
    wanted = [xs, *layer.parameters()]
    expected = torch.autograd.grad(layer(xs)[0].sum(), wanted)
    found = torch.autograd.grad(checkpoint(lambda xs: layer(xs)[0], xs, use_reentrant=False).sum(), wanted)
    assert_same(zip(found, expected, strict=True))


def test_copies_and_pickles_compute_the_same():
    layer = rnnfuse.Recurrent(GruBefore(3, 4), compile=False)
    xs = torch.randn(6, 5, 3)
    expected = layer(xs)[0]
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(xs)[0], expected)
        assert other.cell is not layer.cell
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(xs)[0], expected)


def test_layers_may_share_a_cell():
    cell = GruBefore(4, 4).double()
    stack = rnnfuse.Stack([cell, cell], compile=False)
    xs = doubles(6, 5, 4)
    found = torch.autograd.grad(stack(xs)[0].sum(), list(cell.parameters()))

    assert_same(
        zip(
            found,
            torch.autograd.grad(plain_loop(cell, plain_loop(cell, xs)).sum(), list(cell.parameters())),
            strict=True,
        )
    )


def test_inside_a_users_own_compiled_function():
    layer = rnnfuse.Recurrent(GruBefore(3, 4))
    head = nn.Linear(4, 2)
    xs = torch.randn(6, 5, 3)

    @torch.compile(backend="eager")
    def model(xs):
        return head(layer(xs * 2)[0]).sum()

    assert float(model(xs)) == pytest.approx(float(head(layer(xs * 2)[0]).sum()), rel=1e-5)


def test_a_layer_is_a_module_like_any_other():
    layer = rnnfuse.Recurrent(GruBefore(3, 4))
    own = set(vars(layer)) - set(vars(nn.Module()))
    assert not [name for name in own if hasattr(nn.Module, name)]  # no method of modules is hidden


def test_training_finds_what_the_loop_finds():
    torch.manual_seed(1)
    cells = [FineLstm(3, 8), FineLstm(3, 8)]
    cells[1].load_state_dict(cells[0].state_dict())
    layer, xs, target = rnnfuse.Recurrent(cells[0]), torch.randn(12, 5, 3), torch.randn(5, 8)
    losses = []
    for run, cell in ((lambda: layer(xs)[0][-1], cells[0]), (lambda: loop_of(cells[1], xs), cells[1])):
        optimiser = torch.optim.Adam(cell.parameters(), lr=0.01)
        for _ in range(30):
            optimiser.zero_grad()
            loss = ((run() - target) ** 2).mean()
            loss.backward()
            optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def loop_of(cell, xs):
    state = cell.initial_state(xs[0])
    for x in xs:
        state = cell(x, state)
    return state[0]


# --- compiling once ---


def test_another_number_of_steps_compiles_nothing_and_another_batch_once(monkeypatch):
    compiled = []
    original = rnnfuse.parts.private.compiled
    monkeypatch.setattr("rnnfuse.private.compiled", lambda *given: compiled.append(1) or original(*given))
    layer = rnnfuse.Recurrent(FineLstm(3, 4))
    for steps in (3, 5, 9):
        layer(torch.randn(steps, 5, 3))[0].sum().backward()
    assert len(compiled) == 2  # the loop, and the loop backwards
    for _ in range(2):
        layer(torch.randn(4, 6, 3))[0].sum().backward()
    assert len(compiled) == 4
    assert len(layer._plans) == 1


def test_what_is_explained_is_what_was_done():
    layer = rnnfuse.Recurrent(FineLstm(3, 4), compile=False)
    assert layer.explain() == "nothing is known before the first call"
    layer(torch.randn(6, 5, 3))
    text = layer.explain()
    assert "packed: a sum of 4 products became one" in text
    assert "1 of them products: in the loop\n" in text
    assert plan_of(layer).zones is not None


@pytest.mark.skipif(not private.keeps_graphs(), reason="this version of PyTorch keeps C++ and Triton kernels only")
def test_a_second_process_compiles_nothing(tmp_path):
    """Inductor's cache on disk has whole graphs, not only what its C++ compiler made of them."""
    program = """
import torch, rnnfuse
from cells import FineLstm
from torch._dynamo.utils import counters
with torch.no_grad():
    rnnfuse.Recurrent(FineLstm(3, 4))(torch.randn(3, 2, 3))
print(counters["inductor"]["fxgraph_cache_miss"], counters["inductor"]["fxgraph_cache_hit"])
"""
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    answers = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [answer.stdout.split() for answer in answers] == [["1", "0"], ["0", "1"]]
