"""The losses: what they average over, and their gradients."""

import numpy as np
import pytest

from rnnbench.reference.losses import cross_entropy, ctc_loss, negative_log_likelihood


def test_equal_logits_cost_the_logarithm_of_the_number_of_classes():
    assert cross_entropy(np.zeros((4, 10)), np.array([0, 3, 5, 9]))[0] == pytest.approx(np.log(10))


def test_cross_entropy_is_the_mean_over_all_steps_of_all_sequences():
    logits = np.random.default_rng(0).normal(size=(2, 3, 5))
    targets = np.array([[0, 1, 2], [3, 4, 0]])
    each = [cross_entropy(logits[b, t][None], targets[b, t][None])[0] for b in range(2) for t in range(3)]
    assert cross_entropy(logits, targets)[0] == pytest.approx(np.mean(each))


def test_the_gradient_of_cross_entropy_is_probability_less_target_over_the_count():
    logits = np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]))
    _, gradient = cross_entropy(logits, np.array([0, 2]))
    np.testing.assert_allclose(gradient, np.array([[-0.5, 0.25, 0.25], [0.1, 0.2, -0.3]]) / 2)


def test_cross_entropy_does_not_change_the_logits_and_accepts_large_ones():
    logits = np.array([[1e4, 0.0], [-1e4, 0.0]])
    loss, gradient = cross_entropy(logits, np.array([0, 0]))
    assert loss == pytest.approx(5e3)
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(logits, [[1e4, 0.0], [-1e4, 0.0]])


def test_ctc_is_the_mean_over_the_batch_not_divided_by_the_labels():
    logits = np.random.default_rng(1).normal(size=(3, 6, 4))
    labels, lengths = np.array([[1, 2], [3, 3], [2, 1]]), np.array([6, 4, 5])
    values, gradients = negative_log_likelihood(logits, labels, lengths)
    loss, gradient = ctc_loss(logits, labels, lengths)
    assert loss == pytest.approx(values.sum() / 3)
    np.testing.assert_allclose(gradient, gradients / 3)
