"""Many cells against the plain loop, in float64: outputs, last states, and every gradient."""

import pytest
import torch
from cells import CELLS, Attending, Heads, Random
from helpers import assert_same, both

LENGTHS = torch.tensor([6, 1, 4, 6, 3])


def make(kind, width=3, hidden=4):
    torch.manual_seed(0)
    return kind(width, hidden).double()


def inputs(steps=6, batch=5, width=3):
    return torch.randn(steps, batch, width, dtype=torch.float64)


@pytest.mark.parametrize(
    "options", [{}, {"reverse": True}, {"lengths": LENGTHS}, {"lengths": LENGTHS, "reverse": True}]
)
@pytest.mark.parametrize("kind", CELLS)
def test_a_cell(kind, options):
    cell = make(kind)
    if kind.__name__ == "Counter" and "lengths" in options:
        pytest.skip("a number that all sequences share cannot stay for some of them")
    _, pairs = both(cell, inputs(), compile=False, **options)
    assert_same(pairs)


@pytest.mark.parametrize("kind", CELLS)
def test_a_compiled_cell(kind):
    _, pairs = both(make(kind), inputs(), lengths=None if kind.__name__ == "Counter" else LENGTHS)
    assert_same(pairs)


@pytest.mark.parametrize("seed", range(40))
def test_a_cell_made_at_random(seed):
    torch.manual_seed(seed)
    _, pairs = both(Random(seed, 3, 4).double(), inputs(), lengths=LENGTHS if seed % 2 else None, compile=False)
    assert_same(pairs)


@pytest.mark.parametrize("seed", range(40, 46))
def test_a_cell_made_at_random_and_compiled(seed):
    torch.manual_seed(seed)
    _, pairs = both(Random(seed, 3, 4).double(), inputs(), reverse=bool(seed % 2))
    assert_same(pairs)


@pytest.mark.parametrize(("batch", "hidden"), [(4, 4), (1, 4), (8, 4), (2, 2), (3, 3)])
@pytest.mark.parametrize("kind", [one for one in CELLS if one is not Heads])
def test_sizes_that_coincide_confuse_nothing(kind, batch, hidden):
    cell = make(kind, width=hidden, hidden=hidden)
    _, pairs = both(cell, inputs(steps=batch, batch=batch, width=hidden), compile=False)
    assert_same(pairs)


def test_extra_inputs_get_gradients():
    memory = torch.randn(5, 7, 4, dtype=torch.float64)
    _, pairs = both(make(Attending), inputs(), lengths=LENGTHS, extras={"memory": memory}, compile=False)
    assert_same(pairs)


@pytest.mark.parametrize("kind", [torch.nn.LSTMCell, torch.nn.GRUCell, torch.nn.RNNCell])
def test_pytorchs_own_cells(kind):
    _, pairs = both(make(kind), inputs(), compile=False)
    assert_same(pairs)
