"""CTC against its definition: the sum of the probabilities of all alignments."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnbench.reference.losses import BLANK, log_softmax, negative_log_likelihood


def collapsed(alignment):
    """Merge repeats, then drop blanks."""
    return [label for label, _ in itertools.groupby(alignment) if label != BLANK]


def enumerated(logits, labels):
    """The negative log-likelihood of one sequence, from all alignments."""
    probabilities = np.exp(log_softmax(logits))
    steps, classes = logits.shape
    total = sum(
        np.prod(probabilities[np.arange(steps), alignment])
        for alignment in itertools.product(range(classes), repeat=steps)
        if collapsed(alignment) == list(labels)
    )
    return -np.log(total)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), classes=st.integers(2, 3), count=st.integers(1, 3), seed=st.integers(0, 999))
def test_it_is_the_sum_over_all_alignments_repeated_labels_included(data, classes, count, seed):
    label = st.lists(st.integers(1, classes - 1), min_size=count, max_size=count)
    labels = np.array(data.draw(st.lists(label, min_size=1, max_size=3)))
    lengths = np.array([data.draw(st.integers(2 * count - 1, 6)) for _ in labels])
    logits = np.random.default_rng(seed).normal(scale=2.0, size=(len(labels), 6, classes))
    values, _ = negative_log_likelihood(logits, labels, lengths)
    wanted = [enumerated(logits[row, :length], labels[row]) for row, length in enumerate(lengths)]
    np.testing.assert_allclose(values, wanted, rtol=1e-10)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 999))
def test_the_gradient_is_that_of_finite_differences(seed):
    random = np.random.default_rng(seed)
    logits = random.normal(size=(3, 8, 4))
    labels, lengths = np.array([[1, 1, 2], [2, 2, 2], [3, 1, 3]]), np.array([8, 5, 6])
    direction = random.normal(size=logits.shape)

    def along(step):
        return negative_log_likelihood(logits + step * direction, labels, lengths)[0]

    _, gradient = negative_log_likelihood(logits, labels, lengths)
    slopes = (along(1e-5) - along(-1e-5)) / 2e-5
    np.testing.assert_allclose((gradient * direction).sum(axis=(1, 2)), slopes, rtol=1e-6, atol=1e-8)


def test_steps_beyond_a_sequences_length_have_no_effect():
    random = np.random.default_rng(1)
    logits, labels, lengths = random.normal(size=(2, 7, 4)), np.array([[1, 2], [3, 3]]), np.array([4, 7])
    other = logits.copy()
    other[0, 4:] = 100 * random.normal(size=(3, 4))
    values, gradient = negative_log_likelihood(logits, labels, lengths)
    other_values, other_gradient = negative_log_likelihood(other, labels, lengths)
    np.testing.assert_array_equal(values, other_values)
    np.testing.assert_array_equal(gradient, other_gradient)
    assert not gradient[0, 4:].any()


def test_a_thousand_steps_do_not_underflow():
    logits = 5 * np.random.default_rng(2).normal(size=(1, 1000, 6))
    labels = np.random.default_rng(3).integers(1, 6, (1, 60))
    values, gradient = negative_log_likelihood(logits, labels, np.array([1000]))
    assert np.isfinite(values).all()
    assert values[0] > 750  # exp(-750) is zero in float64
    np.testing.assert_allclose(gradient.sum(axis=2), 0.0, atol=1e-9)  # adding to all logits changes nothing


@pytest.mark.filterwarnings("error")
def test_labels_that_do_not_fit_are_infinitely_unlikely():
    logits = np.zeros((2, 3, 3))
    values, _ = negative_log_likelihood(logits, np.array([[1, 1], [1, 2]]), np.array([2, 2]))
    assert values[0] == np.inf  # two equal labels need a blank between them
    assert values[1] == pytest.approx(2 * np.log(3))
