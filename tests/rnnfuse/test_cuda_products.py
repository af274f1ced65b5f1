"""Large products on a real GPU, where tensor cores add without rounding. Skipped where there is none."""

import pytest
import torch
from cells import FineLstm, tame
from helpers import assert_same, gradients

import rnnfuse
from rnnfuse import large_products
from rnnfuse.large_products import TILES, LargeProducts, run_kernel

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("turned", ["", "left", "right"])
@pytest.mark.parametrize("sizes", [(1600, 256, 1024), (257, 6401, 1023), (64, 20000, 96)])
@pytest.mark.parametrize("shift", [0.0, 1.0])  # numbers of one sign: what is cut off adds up
def test_a_product_is_as_exact_as_cublas(tile, turned, sizes, shift):
    rows, inner, columns = sizes
    left, right = torch.randn(rows, inner, device="cuda") + shift, torch.randn(inner, columns, device="cuda") + shift
    left = left.t().contiguous().t() if turned == "left" else left
    right = right.t().contiguous().t() if turned == "right" else right
    exact = left.double() @ right.double()
    error, known = (
        float((found - exact).abs().max() / exact.abs().max())
        for found in (run_kernel(left, right, tile), torch.mm(left, right))
    )
    assert error <= 1.5 * known + 2e-7, (error, known)


def test_a_layer_multiplies_so(monkeypatch):
    """Whatever is faster here: the kernel is taken."""
    monkeypatch.setattr(large_products, "SMALLEST", 1)
    monkeypatch.setattr(large_products, "GAIN", 1e9)
    monkeypatch.setattr(large_products, "_choices", {})
    cell = tame(FineLstm(48, 64)).cuda()
    xs = torch.randn(40, 32, 48, device="cuda", requires_grad=True)
    results, layers = [], []
    for multiply in (LargeProducts._multiply, lambda self, left, right, out=None: torch.mm(left, right, out=out)):
        monkeypatch.setattr(LargeProducts, "_multiply", multiply)
        layers.append(rnnfuse.Recurrent(cell))
        for _ in range(6):  # of which the last are replayed
            outputs, _ = layers[-1](xs)
            found = [outputs, *gradients(outputs, [], [xs, *cell.parameters()])]
        results.append(found)
    assert_same(zip(*results, strict=True), 1e-5)
    assert ["on tensor cores" in layer.explain() for layer in layers] == [True, False]
