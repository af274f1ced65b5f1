"""Loops as one kernel, written from the plan of any cell: in Triton's interpreter, which needs no GPU."""

import copy
import os

os.environ["TRITON_INTERPRET"] = "1"  # before anything imports Triton

import pytest
import torch
from cells import (
    Attending,
    BatchMean,
    Counter,
    FineLstm,
    GruBefore,
    Heads,
    LayerNormLstm,
    NormedRnn,
    OwnOutput,
    Peephole,
    Random,
    SLstm,
    Tied,
)
from helpers import assert_same, both, check_unbounded_states

pytest.importorskip("triton", reason="Triton is not installed here")

import programs
from programs import Kernels
from torch import nn

from rnnfuse.large_products import LargeProducts
from rnnfuse.persistent import kernel, memory, products
from rnnfuse.persistent.kernel import Tile
from rnnfuse.persistent.products import Sides
from rnnfuse.plan import Plan

#: How often the programs that share sequences wait for each other in a step, forwards and backwards.
BARRIERS = {
    FineLstm: [1, 1],
    Peephole: [1, 1],
    SLstm: [1, 1],
    GruBefore: [2, 2],
    LayerNormLstm: [3, 2],
    NormedRnn: [2, 1],
}
UNITS = 24  # a program of 16 and half of one


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def kernels(monkeypatch):
    return Kernels(monkeypatch)


@pytest.mark.parametrize("cell", BARRIERS, ids=lambda cell: cell.__name__)
@pytest.mark.parametrize("case", ["plain", "lengths", "reverse"])
def test_a_kernel_computes_what_the_loop_computes(kernels, cell, case):
    lengths = torch.tensor([3, 1, *[2] * 15]) if case == "lengths" else None  # 17 sequences: one block and a part
    _, pairs = both(cell(5, UNITS), torch.randn(3, 17, 5), None, lengths, compile=False, reverse=case == "reverse")
    assert_same(pairs, 1e-5)
    assert kernels.barriers == BARRIERS[cell]
    assert kernels.refused == {}


#: What a kernel backwards adds up: a bias; peepholes of the last state; weights and biases of norms of what it has.
SUMS = {FineLstm: 1, Peephole: 3, SLstm: 1, GruBefore: 2, LayerNormLstm: 4}


@pytest.mark.parametrize("cell", SUMS, ids=lambda cell: cell.__name__)
def test_what_is_added_up_over_all_steps_is_added_up_in_the_kernel(kernels, monkeypatch, cell):
    asked = []
    left = Plan.sums_without
    monkeypatch.setattr(Plan, "sums_without", lambda plan, known: [asked.append(set(known)), left(plan, known)][1])
    both(cell(5, UNITS), torch.randn(2, 3, 5), compile=False)
    (backwards,) = [one for form, one in kernels.made.items() if form.from_the_end]
    writer, _ = next(iter(backwards._writers.values()))
    assert len(writer.sums) == SUMS[cell]
    assert asked[-1] == set(writer.sums)


@pytest.mark.parametrize(("cell", "is_after_turned"), [(LayerNormLstm, True), (NormedRnn, False)])
def test_what_was_normalised_is_multiplied_ahead(kernels, cell, is_after_turned):
    """A product of the state by the product of its weights with themselves, anything else as it is."""
    both(cell(5, UNITS), torch.randn(2, 3, 5), compile=False)
    (backwards,) = [one for form, one in kernels.made.items() if form.from_the_end]
    assert [one.is_after_turned for one in backwards._factors if one.left is not None] == [is_after_turned]


@pytest.mark.parametrize("cell", [LayerNormLstm, NormedRnn])
def test_without_what_is_multiplied_ahead_it_would_be_wrong(kernels, monkeypatch, cell):
    multiply = LargeProducts._multiply
    monkeypatch.setattr(LargeProducts, "_multiply", lambda *given: multiply(*given).zero_())
    _, pairs = both(cell(5, UNITS), torch.randn(3, 3, 5), compile=False)
    with pytest.raises(AssertionError, match="is off by"):
        assert_same(pairs, 1e-5)


def test_a_large_mean_takes_fewer_digits_than_in_the_loop(kernels):
    """The gradient is set right by sums of which a large mean would take digits, if it were not left out before."""
    cell = LayerNormLstm(5, UNITS)
    with torch.no_grad():
        cell.wh.weight += 30 * torch.randn(UNITS)  # all columns of what is normalised have much in common
    xs, state = torch.randn(2, 3, 5), tuple(torch.randn(2, 3, UNITS))
    _, pairs = both(cell, xs, state, compile=False)
    exact = copy.deepcopy(cell).double()
    _, expected = both(exact, xs.double(), tuple(one.double() for one in state), compile=False)
    place = 4  # outputs, two last states, the gradient of the input, and that of what the product was of
    (by_kernel, by_loop), (_, right) = pairs[place], expected[place]
    errors = [float((one.double() - right).abs().max() / right.abs().max()) for one in (by_kernel, by_loop)]
    assert errors[0] < 0.2 * errors[1], errors
    assert len(kernels.made) == 2


def test_the_last_program_sets_the_counters_back(kernels):
    both(LayerNormLstm(5, UNITS), torch.randn(2, 17, 5), compile=False)  # two blocks of sequences, two programs each
    for made in kernels.made.values():
        for _, counters in made._scratch.values():
            assert len(counters) == 64
            assert not counters.any()


class Half(Kernels):
    """Of the steps, the later half."""

    def run_range(self, loop, start, stop):
        middle = (start + stop) // 2
        if loop.form.from_the_end:
            super().run_range(loop, middle, stop)
        loop.run(start, middle if loop.form.from_the_end else stop)


def test_sums_of_a_part_of_the_steps_are_not_taken_for_all(monkeypatch):
    Half(monkeypatch)
    _, pairs = both(Peephole(5, UNITS), torch.randn(4, 3, 5), compile=False)
    assert_same(pairs, 1e-5)


@pytest.mark.parametrize("cell", [nn.GRUCell, nn.LSTMCell, nn.RNNCell, Tied])
def test_other_cells(kernels, cell):
    _, pairs = both(cell(5, UNITS), torch.randn(3, 3, 5), compile=False)
    assert_same(pairs, 1e-5)
    assert len(kernels.made) == 2


@pytest.mark.parametrize("tile", [Tile(16, 32, 4, "ieee"), Tile(32, 8, 8, "ieee"), Tile(16, 64, 2, "ieee")])
def test_the_tile_changes_nothing(monkeypatch, tile):
    kernels = Kernels(monkeypatch, tile)
    _, pairs = both(LayerNormLstm(5, UNITS), torch.randn(2, 17, 5), compile=False)
    assert_same(pairs, 1e-5)
    assert kernels.barriers == [3, 2]


@pytest.mark.parametrize("cell", [FineLstm, GruBefore])
def test_a_left_side_without_room_for_all_of_it_is_loaded_in_parts(monkeypatch, cell):
    monkeypatch.setattr(kernel, "MOST_BYTES", 0)
    monkeypatch.setattr(products, "WIDEST", 32)
    monkeypatch.setattr(products, "TILES_AHEAD", 1)
    kernels = Kernels(monkeypatch, Tile(16, 32, 2, "ieee"))
    _, pairs = both(cell(5, 40), torch.randn(3, 17, 5), compile=False)
    assert_same(pairs, 1e-5)
    assert kernels.barriers == BARRIERS[cell]
    (backwards,) = [one for form, one in kernels.made.items() if form.from_the_end]
    _, multiplied = backwards._written(2, Sides.IN_PARTS)[0].source().split("tl.dot(", 1)
    assert "tl.load(" in multiplied  # what is loaded while others are multiplied


@pytest.mark.parametrize("precision", ["ieee", "tf32x3"])
def test_a_left_side_that_is_loaded_at_once_has_several_parts_for_each_warp(monkeypatch, precision):
    tile = Tile(16, 16, 4, precision)
    kernels = Kernels(monkeypatch, tile)
    _, pairs = both(FineLstm(5, 40), torch.randn(3, 17, 5), compile=False)  # 160 columns: two tiles, one partly filled
    assert_same(pairs, 1e-5)
    (backwards,) = [one for form, one in kernels.made.items() if form.from_the_end]
    assert "tl.reshape(product" in backwards._written(4, backwards.coming(tile))[0].source()


AS_TWO = Tile(16, 16, 2, "tf32x3")  # so few warps that each has all rows of some columns


@pytest.mark.parametrize("cell", [FineLstm, GruBefore, LayerNormLstm])
def test_float32_numbers_are_multiplied_as_two_numbers_of_tf32(monkeypatch, cell):
    kernels = Kernels(monkeypatch, AS_TWO)
    _, pairs = both(cell(5, UNITS), torch.randn(3, 17, 5), compile=False)
    assert_same(pairs, 1e-5)
    written = [kernel._written(AS_TWO.warps, Sides.AS_TWO)[0].source() for kernel in kernels.made.values()]
    assert all(text.count("_near = nearest(") >= 2 for text in written)


@pytest.mark.parametrize("warps", [2, 16])  # so many that each has a part of the left side
def test_what_is_infinite_stays_so_and_what_is_no_number_too(monkeypatch, warps):
    kernels = Kernels(monkeypatch, Tile(16, 16, warps, "tf32x3"))
    check_unbounded_states(FineLstm(5, 40), compile=False)
    assert kernels.made


def test_which_kernels_run_with_fewer_warps(monkeypatch):
    """Those that take float32 numbers apart once, and those that have none: not where each warp would."""
    kernels = Kernels(monkeypatch, AS_TWO)
    both(FineLstm(5, UNITS), torch.randn(2, 3, 5), compile=False)
    for made in kernels.made.values():
        assert made.runs_with_fewer_warps(AS_TWO)
        with monkeypatch.context() as little_room:
            little_room.setattr(kernel, "MOST_BYTES", 0)
            assert not made.runs_with_fewer_warps(AS_TWO)
            assert made.runs_with_fewer_warps(AS_TWO._replace(precision="tf32"))


def test_with_numbers_that_are_not_the_nearest_they_would_be_wrong(monkeypatch):
    """The product of two rests is left out. So the test above would notice a rest that is too large."""
    monkeypatch.setitem(programs.WITHOUT_ASSEMBLER, "nearest", lambda x, once: x * 0.98)
    Kernels(monkeypatch, AS_TWO)
    _, pairs = both(FineLstm(5, UNITS), torch.randn(3, 17, 5), compile=False)
    with pytest.raises(AssertionError, match="is off by"):
        assert_same(pairs, 1e-5)


def test_a_product_of_many_sides_has_several_sums(monkeypatch):
    monkeypatch.setattr(products, "WIDEST", 16)
    kernels = Kernels(monkeypatch, Tile(16, 16, 2, "ieee"))
    _, pairs = both(FineLstm(5, 70), torch.randn(3, 17, 5), compile=False)  # five sides, four sums
    assert_same(pairs, 1e-5)
    (forwards,) = [one for form, one in kernels.made.items() if not form.from_the_end]
    assert forwards._written(2, Sides.WHOLE)[0].source().count("= plus(") == products.SUMS - 1


def test_without_its_barriers_it_would_be_wrong(monkeypatch):
    """So the tests above would notice one that is missing."""
    for cell in BARRIERS:
        Kernels(monkeypatch, barrier=lambda counter: None)
        _, pairs = both(cell(5, UNITS), torch.randn(5, 3, 5), compile=False)
        with pytest.raises(AssertionError, match="is off by"):
            assert_same(pairs, 1e-5)


@pytest.mark.parametrize("cell", [FineLstm, GruBefore])
def test_a_value_that_is_stored_after_a_program_has_arrived_comes_too_late_for_others(monkeypatch, cell):
    """What only later kernels read is stored then. So the tests above would notice if another program reads it."""
    store = memory.Memory.store
    monkeypatch.setattr(memory.Memory, "store", lambda self, node, value, is_told: store(self, node, value, False))
    Kernels(monkeypatch)
    _, pairs = both(cell(5, UNITS), torch.randn(5, 3, 5), compile=False)
    with pytest.raises(AssertionError, match="is off by"):
        assert_same(pairs, 1e-5)


def test_what_a_step_is_given_is_loaded_in_the_step_before(kernels):
    both(FineLstm(5, UNITS), torch.randn(3, 2, 5), compile=False)
    for kernel_made in kernels.made.values():
        _, _, after = kernel_made.source.partition("arrive(counter)\n")[2].rpartition("        arrive(counter)")
        while_waiting, _, rest = after.partition("wait(counter, met)")
        assert "_following = tl.load(" in while_waiting
        assert "_following = tl.load(" not in rest


def test_half_precision(kernels):
    dtype = torch.float16  # the interpreter's products of bfloat16 are wrong
    _, pairs = both(FineLstm(5, 16).to(dtype), torch.randn(3, 2, 5, dtype=dtype), compile=False)
    assert_same([(a.float(), b.float()) for a, b in pairs], 0.05)
    assert len(kernels.made) == 2


def test_cells_made_at_random(kernels):
    for seed in range(8):
        torch.manual_seed(seed)
        _, pairs = both(Random(seed, 5, 20), torch.randn(3, 3, 5), compile=False)
        assert_same(pairs, 1e-4)
    assert len(kernels.made) > len(kernels.refused)


@pytest.mark.parametrize(
    ("cell", "extras", "reason"),
    [
        (Heads(5, 8), {}, "a state is not one vector for each sequence"),
        (Counter(5, 16), {}, "a state is not one vector for each sequence"),
        (BatchMean(5, 16), {}, "otherwise than over all units"),
        (OwnOutput(5, 16), {}, "width is no multiple of the units'"),
        (Attending(5, 16), {"memory": torch.randn(2, 3, 4)}, "weights for all units"),
        (FineLstm(5, 8), {}, "fewer than 16 units"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_cannot_be_a_kernel_says_why_and_runs_as_before(kernels, cell, extras, reason):
    _, pairs = both(cell, torch.randn(3, 2, 5), extras=extras, compile=False)
    assert_same(pairs, 1e-4)
    assert any(reason in said for said in kernels.refused.values()), kernels.refused
