"""Large products: the kernel in Triton's interpreter, which needs no GPU, and the choice between it and cuBLAS."""

import os

os.environ["TRITON_INTERPRET"] = "1"  # before anything imports Triton

from types import SimpleNamespace

import pytest
import torch
from cells import FineLstm

pytest.importorskip("triton", reason="Triton is not installed here")

import programs

import rnnfuse
from rnnfuse import large_products, private
from rnnfuse.large_products import Choice, LargeProducts, Tile, choice_for, run_kernel

TILE = Tile(16, 16, 16, 4)
CUBLAS = 100.0


@pytest.fixture(autouse=True)
def in_the_interpreter(monkeypatch):
    torch.manual_seed(0)
    for name, function in programs.WITHOUT_ASSEMBLER.items():
        monkeypatch.setitem(large_products.compiled().fn.__globals__, name, function)


def matrices(rows, inner, columns, turned=""):
    """`turned`: sides that lie in memory column by column."""
    left, right = torch.randn(rows, inner), torch.randn(inner, columns)
    left = left.t().contiguous().t() if "left" in turned else left
    return left, (right.t().contiguous().t() if "right" in turned else right)


def assert_exact(found, left, right):
    expected = left.double() @ right.double()
    assert float((found - expected).abs().max()) < 1e-6 * left.shape[1] ** 0.5 * float(expected.abs().max())


@pytest.mark.parametrize("turned", ["", "left", "right", "left and right"])
@pytest.mark.parametrize("sizes", [(32, 16, 48), (45, 70, 19), (1, 1, 1)])
@pytest.mark.parametrize("parts", [1, 3])
def test_the_kernel_is_the_product(monkeypatch, sizes, turned, parts):
    monkeypatch.setattr(large_products, "FEWEST_TILES", 1)
    monkeypatch.setattr(large_products, "processors", lambda device: parts * 9)
    sides = matrices(*sizes, turned)
    assert_exact(run_kernel(*sides, TILE), *sides)


def test_a_long_sum_is_cut_into_parts(monkeypatch):
    monkeypatch.setattr(large_products, "processors", lambda device: 4)
    left, right = matrices(16, 16 * 16 * 3 + 5, 16)
    grids = []
    kernel = large_products.compiled()
    monkeypatch.setattr(large_products, "compiled", lambda: Recording(kernel, grids))
    assert_exact(run_kernel(left, right, TILE), left, right)
    assert grids == [(1, 3)]


class Recording:
    """A kernel that remembers how many programs it had."""

    def __init__(self, kernel, grids):
        self.kernel, self.grids = kernel, grids

    def __getitem__(self, grid):
        self.grids.append(grid)
        return self.kernel[grid]


def test_it_is_written_where_it_belongs():
    sides, whole = matrices(20, 30, 24), torch.full((3, 20, 24), 7.0)
    found = run_kernel(*sides, TILE, whole[1])
    assert found.data_ptr() == whole[1].data_ptr()
    assert_exact(whole[1], *sides)
    assert (whole[[0, 2]] == 7).all()


def test_with_numbers_that_are_not_the_nearest_it_would_be_wrong(monkeypatch):
    monkeypatch.setitem(large_products.compiled().fn.__globals__, "nearest", lambda x, once: x * 0.98)
    sides = matrices(20, 30, 24)
    with pytest.raises(AssertionError):
        assert_exact(run_kernel(*sides, TILE), *sides)


# --- the choice, by made-up times ---


class MadeUp:
    """A GPU on which products take as long as they are told, by the columns of a tile."""

    def __init__(self, monkeypatch):
        self.times, self.kept, self.is_alone, self.ran = {128: 60.0, 64: 80.0}, {}, True, []
        for name, made_up in {
            "_choices": {},
            "SMALLEST": 1,
            "TILES": (Tile(64, 128, 32, 4), Tile(64, 64, 32, 4)),
            "OwnStream": lambda device: SimpleNamespace(is_alone=self.is_alone),
            "microseconds_captured": self.timed,
            "run_kernel": self.run,
        }.items():
            monkeypatch.setattr(large_products, name, made_up)
        monkeypatch.setattr(private, "remembered", self.kept.get)
        monkeypatch.setattr(private, "remember", self.kept.__setitem__)
        self.capability, self.captures = (9, 0), False
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: self.capability)
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: self.captures)

    def run(self, left, right, tile, out=None):
        self.ran.append(tile)
        return torch.mm(left, right, out=out)

    def timed(self, call, place):
        before = len(self.ran)
        call()
        took = CUBLAS if len(self.ran) == before else self.times[self.ran[-1].columns]
        if took is None:
            raise RuntimeError("out of resources")
        return took * large_products.CALLS


@pytest.fixture
def made_up(monkeypatch):
    return MadeUp(monkeypatch)


def test_the_fastest_tile_is_taken_and_remembered(made_up):
    sides = matrices(30, 20, 10)
    found = choice_for(*sides)
    assert found.tile.columns == 128
    assert found.said == "products like 30 × 20 × 10 are made on tensor cores: 60 µs, 100 by cuBLAS"
    made_up.times = {}  # nothing is measured again, in this process or in another
    assert choice_for(*sides) == found
    large_products._choices.clear()
    assert choice_for(*sides) == found


def test_sizes_with_as_many_digits_are_measured_once(made_up):
    choice_for(*matrices(30, 20, 10))
    count = len(made_up.ran)
    choice_for(*matrices(25, 20, 10))
    assert len(made_up.ran) == count
    choice_for(*matrices(33, 20, 10))
    choice_for(*matrices(30, 20, 10, "left"))
    assert len(made_up.ran) > 2 * count


@pytest.mark.parametrize("times", [{128: 96.0, 64: 99.0}, {128: None, 64: None}])
def test_where_no_tile_is_faster_it_is_cublas(made_up, times):
    made_up.times = times
    assert choice_for(*matrices(30, 20, 10)) == Choice(None)


def test_a_tile_that_asks_for_too_much_is_left_out(made_up):
    made_up.times[128] = None
    assert choice_for(*matrices(30, 20, 10)).tile.columns == 64


def test_tf32_older_gpus_and_small_products_are_cublas(made_up, monkeypatch):
    sides = matrices(30, 20, 10)
    monkeypatch.setattr(large_products, "SMALLEST", 30 * 20 * 10 + 1)
    assert choice_for(*sides) is None
    monkeypatch.setattr(large_products, "SMALLEST", 1)
    assert choice_for(*[one.double() for one in sides]) is None
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        assert choice_for(*sides) == Choice(None)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    made_up.capability = (7, 5)
    assert choice_for(*sides) == Choice(None)
    assert not made_up.ran


def test_nothing_is_measured_while_a_graph_is_captured(made_up):
    made_up.captures = True
    assert choice_for(*matrices(30, 20, 10)) is None
    made_up.captures = False
    assert choice_for(*matrices(30, 20, 10)).tile is not None
    made_up.captures = True
    assert choice_for(*matrices(30, 20, 10)).tile is not None


def test_layers_multiply_so_outside_of_their_loops(monkeypatch):
    """Forwards those of the inputs, backwards those of the inputs' gradients and of both groups of weights."""
    multiplied = []

    def tile_of(self, left, right):
        multiplied.append((tuple(left.shape), tuple(right.shape)))
        self.said.setdefault("made on tensor cores")
        return TILE

    def multiply(self, left, right, out=None):
        return run_kernel(left, right, self._tile(left, right), out)

    monkeypatch.setattr(LargeProducts, "_tile", tile_of)
    monkeypatch.setattr(LargeProducts, "_multiply", multiply)
    cell, xs = FineLstm(5, 16), torch.randn(7, 3, 5, requires_grad=True)
    layer = rnnfuse.Recurrent(cell, compile=False)
    found = torch.autograd.grad(layer(xs)[0].square().sum(), [xs, *cell.parameters()])
    assert sorted(multiplied) == [((5, 21), (21, 64)), ((16, 21), (21, 64)), ((21, 5), (5, 64)), ((21, 64), (64, 5))]
    assert layer.explain().count("made on tensor cores") == 1
    monkeypatch.undo()
    plain = rnnfuse.Recurrent(cell, compile=False)
    expected = torch.autograd.grad(plain(xs)[0].square().sum(), [xs, *cell.parameters()])
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
