"""One LSTM layer: what a step computes, and what directions and masks mean."""

import numpy as np
import pytest

from rnnbench.reference import lstm

STEPS, BATCH, WIDTH, HIDDEN = 5, 3, 4, 2


@pytest.fixture
def layer():
    """Inputs and weights of a small layer, by argument name."""
    draw = np.random.default_rng(7).normal
    return {
        "x": draw(size=(STEPS, BATCH, WIDTH)),
        "w": draw(size=(WIDTH, 4 * HIDDEN)),
        "u": draw(size=(HIDDEN, 4 * HIDDEN)),
        "b": draw(size=4 * HIDDEN),
    }


def test_two_steps_of_one_unit_are_those_worked_out_by_hand():
    w, u, b = (np.array(values) for values in ([[1.0, 2.0, 3.0, 4.0]], [[5.0, 6.0, 7.0, 8.0]], [0.1, 0.2, 0.3, 0.4]))
    outputs, _ = lstm.forward(np.array([[[0.5]], [[-0.25]]]), w, u, b)

    def squash(z):
        return 1 / (1 + np.exp(-z))

    c1 = squash(0.6) * np.tanh(1.8)
    h1 = squash(2.4) * np.tanh(c1)
    i, f, g, o = squash(5 * h1 - 0.15), squash(6 * h1 - 0.3), np.tanh(7 * h1 - 0.45), squash(8 * h1 - 0.6)
    c2 = f * c1 + i * g
    assert outputs.ravel() == pytest.approx([h1, o * np.tanh(c2)])


def test_the_backward_direction_is_the_forward_one_on_reversed_data(layer):
    d_outputs = np.random.default_rng(8).normal(size=(STEPS, BATCH, HIDDEN))
    outputs, trace = lstm.forward(**layer, reverse=True)
    turned_outputs, turned_trace = lstm.forward(**layer | {"x": layer["x"][::-1]})
    np.testing.assert_allclose(outputs, turned_outputs[::-1])

    gradients = lstm.backward(trace, d_outputs)
    turned = lstm.backward(turned_trace, d_outputs[::-1])
    np.testing.assert_allclose(gradients.x, turned.x[::-1])
    for name in "wub":
        np.testing.assert_allclose(getattr(gradients, name), getattr(turned, name), err_msg=name)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_masked_sequence_has_the_same_outputs_as_alone_and_zeros_after_its_end(layer, reverse):
    lengths = [5, 2, 3]
    mask = np.arange(STEPS)[:, None] < lengths
    outputs, _ = lstm.forward(**layer, mask=mask, reverse=reverse)
    for row, length in enumerate(lengths):
        alone, _ = lstm.forward(**layer | {"x": layer["x"][:length, row : row + 1]}, reverse=reverse)
        np.testing.assert_allclose(outputs[:length, row], alone[:, 0])
        assert not outputs[length:, row].any()


@pytest.mark.parametrize("reverse", [False, True])
def test_nothing_beyond_a_sequences_end_gets_a_gradient(layer, reverse):
    mask = np.arange(STEPS)[:, None] < [5, 2, 3]
    _, trace = lstm.forward(**layer, mask=mask, reverse=reverse)
    d_x = lstm.backward(trace, np.ones((STEPS, BATCH, HIDDEN))).x
    assert not d_x[~mask].any()
    assert d_x[mask].all()


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_skip_a_masked_step_in_the_middle(layer, reverse):
    random = np.random.default_rng(9)
    mask = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 0, 0], [0, 1, 1]], dtype=bool)
    d_outputs = random.normal(size=(STEPS, BATCH, HIDDEN))
    _, trace = lstm.forward(**layer, mask=mask, reverse=reverse)
    gradients = lstm.backward(trace, d_outputs)
    for name, array in layer.items():
        direction = random.normal(size=array.shape)

        def along(step, name=name, direction=direction):
            moved = layer | {name: layer[name] + step * direction}
            return np.sum(lstm.forward(**moved, mask=mask, reverse=reverse)[0] * d_outputs)

        slope = (along(1e-5) - along(-1e-5)) / 2e-5
        assert np.sum(getattr(gradients, name) * direction) == pytest.approx(slope, rel=1e-6, abs=1e-8), name


def test_a_mask_of_all_steps_changes_nothing(layer):
    everything = np.ones((STEPS, BATCH), dtype=bool)
    np.testing.assert_array_equal(lstm.forward(**layer)[0], lstm.forward(**layer, mask=everything)[0])


def test_the_sigmoid_is_right_at_both_ends_without_overflow():
    with np.errstate(over="raise"):
        values = lstm.sigmoid(np.array([-1000.0, -40.0, 0.0, 40.0, 1000.0]))
    np.testing.assert_allclose(values, [0.0, np.exp(-40.0), 0.5, 1.0, 1.0], rtol=1e-15)
