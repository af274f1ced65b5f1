"""How a step is taken apart: where its products are, what is written where, what is kept and what is computed again."""

import pytest
import torch
from cells import Dropping, FineLstm, GruBefore, LayerNormLstm, Peephole, SLstm, tame
from helpers import assert_same, both, doubles, plain_loop, plan_of
from torch import nn

import rnnfuse
from rnnfuse.buffers import Buffers
from rnnfuse.zones import Zone


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def products(plan, zone):
    return sum("mm" in str(node.target) for node in plan.zones.in_zone(zone))


@pytest.mark.parametrize(
    ("kind", "in_a_step", "sums"),
    [(FineLstm, 1, 0), (Peephole, 1, 0), (LayerNormLstm, 1, 0), (SLstm, 1, 0), (GruBefore, 2, 0)],
)
def test_a_step_has_as_few_products_as_it_can(kind, in_a_step, sums):
    layer = rnnfuse.Recurrent(kind(3, 4), compile=False)
    layer(torch.randn(6, 5, 3))
    plan = plan_of(layer)
    assert products(plan, Zone.AHEAD) == 1
    assert products(plan, Zone.LOOP) == products(plan, Zone.BACK) == in_a_step
    assert len(plan.backward_loop(False).added) == sums


def test_gradients_of_gates_lie_side_by_side_once_and_a_last_product_is_written_into_its_place():
    layer = rnnfuse.Recurrent(Peephole(3, 4), compile=False)
    layer(torch.randn(6, 5, 3))
    back = plan_of(layer).back
    assert len(back.last_products) == 1
    assert len(back.within) == 3  # those of the gates with a peephole, which are needed one by one too
    assert len({one.output for one in back.within.values()}) == 1
    assert products(plan_of(layer), Zone.AFTER) == 3  # of the inputs, of all w, of all u


@pytest.mark.parametrize("kind", [FineLstm, Peephole, LayerNormLstm])
def test_under_autocast_there_are_as_few(kind):
    """There each product is widened before it is added to others. Beside the loop, whose products are rounded too."""
    cell, xs = tame(kind(3, 16)), torch.randn(6, 5, 3)
    layer, results = rnnfuse.Recurrent(cell, compile=False), []
    for run in (layer, lambda xs: (plain_outputs(cell, xs), None)):
        with torch.autocast("cpu", torch.bfloat16):
            outputs, _ = run(xs)
        results.append([outputs, *torch.autograd.grad(outputs.float().square().sum(), list(cell.parameters()))])
    assert_same(zip(*results, strict=True), 2e-2)
    plan = plan_of(layer)
    assert products(plan, Zone.LOOP) == products(plan, Zone.BACK) == 1
    assert products(plan, Zone.AFTER) == 3


class LinearGates(nn.Module):
    """An LSTM with an nn.Linear for each gate and side, whose gradients are the other way round than products'."""

    def __init__(self, width, hidden):
        super().__init__()
        self.of_input = nn.ModuleList(nn.Linear(width, hidden) for _ in range(4))
        self.of_state = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(4))
        self.hidden = hidden

    initial_state = FineLstm.initial_state

    def forward(self, x, state):
        h, c = state
        i, f, g, o = (one(x) + other(h) for one, other in zip(self.of_input, self.of_state, strict=True))
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


def test_gradients_of_weights_that_share_an_input_are_one_product():
    layer, pairs = both(LinearGates(3, 4).double(), doubles(6, 5, 3), compile=False)
    assert_same(pairs)
    plan = plan_of(layer)
    assert products(plan, Zone.LOOP) == products(plan, Zone.BACK) == 1
    assert products(plan, Zone.AFTER) == 3  # of the inputs, of all weights of the input, of all of the state


def test_gradients_of_a_layer_norms_parameters_are_one_operator_after_the_loop():
    layer = rnnfuse.Recurrent(LayerNormLstm(3, 4), compile=False)
    layer(torch.randn(6, 5, 3))
    plan = plan_of(layer)

    def wanted(zone):
        """Which gradients the derivatives of layer norms make there: of what is normalised, of weight and bias."""
        nodes = [one for one in plan.zones.in_zone(zone) if "layer_norm_backward" in str(one.target)]
        return sorted(node.args[-1] for node in nodes)

    assert wanted(Zone.BACK) == [[True, False, False]] * 2
    assert wanted(Zone.SUMS) == [[False, True, True]] * 3
    assert wanted(Zone.AFTER) == [[True, False, False]]
    assert not any("mul" in str(node.target) for zone in (Zone.SUMS, Zone.AFTER) for node in plan.zones.in_zone(zone))


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_gradients_of_the_inputs_are_computed_only_where_they_are_wanted(monkeypatch, layers, recompute):
    if recompute and layers > 1:
        pytest.skip("what is computed again is one layer at a time")
    ran, run = [], Buffers.run_and_store
    monkeypatch.setattr(
        Buffers, "run_and_store", lambda self, part, *range: ran.append(part) or run(self, part, *range)
    )
    stack = rnnfuse.Stack([FineLstm(3 if k == 0 else 4, 4) for k in range(layers)], compile=False, recompute=recompute)
    for wanted in (False, True, False):
        ran.clear()
        stack(torch.randn(6, 5, 3, requires_grad=wanted))[0].sum().backward()
        plans = [plan_of(layer) for (layer,) in stack.layers]
        below, *above = [sum(part is plan.after_for_inputs for part in ran) > 0 for plan in plans]
        assert below == wanted
        assert all(above)


def test_gradients_of_biases_are_added_up_at_once():
    layer = rnnfuse.Recurrent(FineLstm(3, 4), compile=False)
    layer(torch.randn(6, 5, 3))
    assert "4 sums over sequences became one" in layer.explain()
    plan = plan_of(layer)
    assert plan.back.within == {}  # nothing needs those of a single gate
    assert [str(node.target) for node in plan.sums_without(()).nodes] == ["aten.sum.dim_IntList"]
    assert "aten.sum.dim_IntList" not in [str(node.target) for node in plan.after.nodes]


def test_outputs_are_the_users_own():
    """What a user does with them changes neither the other results nor the gradients."""
    cell = FineLstm(3, 4).double()
    xs = doubles(6, 5, 3)
    expected = torch.autograd.grad((2 * plain_outputs(cell, xs)).sum(), list(cell.parameters()))
    for recompute in (False, True):
        ys, (h, _) = rnnfuse.Recurrent(cell, compile=False, recompute=recompute)(xs)
        last = h.detach().clone()
        found = torch.autograd.grad(ys.mul_(2).sum(), list(cell.parameters()), retain_graph=True)
        assert torch.equal(h, last)
        assert_same(zip(found, expected, strict=True))
    with torch.no_grad():
        ys, (h, _) = rnnfuse.Recurrent(cell, compile=False)(xs)
        ys.zero_()
        assert torch.equal(h, last)


def plain_outputs(cell, xs):
    state, outputs = cell.initial_state(xs[0]), []
    for x in xs:
        state = cell(x, state)
        outputs.append(state[0])
    return torch.stack(outputs)


class Delayed(nn.Module):
    """States that the loop does not make: the input before, and one that never changes."""

    def initial_state(self, x):
        return x.new_zeros(x.shape), x.new_ones(x.shape), x.new_zeros(x.shape)

    def forward(self, x, state):
        before, same, total = state
        return x, (x, same, total + torch.tanh(before * same))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("recompute", [False, True])
def test_states_that_the_loop_does_not_make(reverse, recompute):
    options = {"reverse": reverse, "recompute": recompute, "compile": False}
    layer, pairs = both(Delayed(), doubles(7, 2, 3), lengths=None, **options)
    plan_of(layer)
    assert_same(pairs)


# --- memory, and several processes ---


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", [FineLstm, GruBefore, SLstm])
def test_what_is_computed_again_is_the_same(kind, reverse):
    lengths = torch.tensor([23, 2, 11, 1, 20])
    _, pairs = both(
        kind(3, 4).double(), doubles(23, 5, 3), lengths=lengths, compile=False, recompute=True, reverse=reverse
    )
    assert_same(pairs)


def test_what_is_computed_again_has_the_same_dropout_and_keeps_less():
    cell = Dropping().double()
    xs = doubles(64, 5, 3)
    found, kept = [], []
    for recompute in (False, True):
        torch.manual_seed(7)
        sizes = {}

        def pack(tensor, sizes=sizes):
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        layer = rnnfuse.Recurrent(cell, compile=False, recompute=recompute)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            ys, _ = layer(xs)
        plan_of(layer)  # although its first call was under hooks
        found.append([ys, *torch.autograd.grad(ys.sum(), list(cell.parameters()))])
        kept.append(sum(sizes.values()))
    assert_same(zip(*found, strict=True))
    assert kept[1] < 0.7 * kept[0]


def test_data_parallel_training(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        layer = rnnfuse.Recurrent(GruBefore(3, 4), compile=False)
        parallel = nn.parallel.DistributedDataParallel(layer)
        xs = torch.randn(6, 5, 3)
        parallel(xs)[0].sum().backward()
        expected = torch.autograd.grad(plain_loop(layer.cell, xs).sum(), list(layer.cell.parameters()))
        assert_same(zip([one.grad for one in layer.cell.parameters()], expected, strict=True), tolerance=1e-5)
    finally:
        torch.distributed.destroy_process_group()


def test_a_state_that_changes_its_type_runs_as_the_loop():
    """The first state is float32; autocast makes every later one bfloat16."""
    cell = nn.RNNCell(3, 4)
    xs = torch.randn(6, 5, 3)
    with torch.autocast("cpu", torch.bfloat16):
        with pytest.warns(RuntimeWarning, match=r"enters the step as torch.float32 and leaves it as torch.bfloat16"):
            ys, _ = rnnfuse.Recurrent(cell, compile=False)(xs)
        h = torch.zeros(5, 4)
        for t in range(6):
            h = cell(xs[t], h)
            assert torch.equal(ys[t], h)
        layer = rnnfuse.Recurrent(cell, compile=False)
        layer(xs, torch.zeros(5, 4, dtype=torch.bfloat16))
        plan_of(layer)
