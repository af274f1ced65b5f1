"""Adam against calculations by hand, and what training reports."""

import itertools

import numpy as np
import pytest

from rnnbench.domain.catalog import parse_workload
from rnnbench.reference.inputs import make_batches, make_parameters
from rnnbench.reference.network import loss_and_gradients
from rnnbench.reference.training import Adam, train

WORKLOAD = parse_workload("ptb-lm[batch=3,steps=4,vocabulary=7,embedding=3,hidden=3,layers=2]")


def test_the_first_step_is_one_learning_rate_long_whatever_the_gradients_size():
    adam = Adam({"p": np.array([1.0, 1.0, 1.0])})
    adam.step({"p": np.array([4.0, -0.02, 0.0])})
    np.testing.assert_allclose(adam.parameters["p"], [0.999, 1.001, 1.0], rtol=1e-8)


def test_two_steps_are_those_worked_out_by_hand():
    adam = Adam({"p": np.array([0.0])})
    adam.step({"p": np.array([1.0])})
    adam.step({"p": np.array([3.0])})
    mean = (0.9 * 0.1 + 0.1 * 3) / (1 - 0.9**2)
    square = (0.999 * 0.001 + 0.001 * 9) / (1 - 0.999**2)
    assert adam.parameters["p"][0] == pytest.approx(-0.001 - 0.001 * mean / np.sqrt(square), rel=1e-7)


def test_epsilon_is_added_outside_the_corrected_root():
    """With a gradient as small as epsilon, the first step is half as long; with epsilon inside the root it is not."""
    adam = Adam({"p": np.array([0.0])})
    adam.step({"p": np.array([1e-8])})
    assert adam.parameters["p"][0] == pytest.approx(-0.0005)


def test_an_uncorrected_epsilon_is_that_of_keras():
    """As keras.optimizers.Adam has it: alpha·m / (√v + ε'), with ε' = ε·√(1 − β2)."""
    gradient, mean, square, moved = 2e-8, 0.0, 0.0, 0.0
    adam, published = Adam({"p": np.array([0.0])}, uncorrected_epsilon=True), Adam({"p": np.array([0.0])})
    for step in (1, 2, 3):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        alpha = 1e-3 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        moved -= alpha * mean / (np.sqrt(square) + 1e-8 * np.sqrt(0.001))
        for one in (adam, published):
            one.step({"p": np.array([gradient])})
        assert adam.parameters["p"][0] == pytest.approx(moved, rel=1e-12)
    assert published.parameters["p"][0] != pytest.approx(moved, rel=1e-2)


def test_adam_does_not_change_the_given_arrays():
    given = np.array([1.0])
    Adam({"p": given}).step({"p": np.array([1.0])})
    assert given == 1.0


def test_training_reports_each_batchs_loss_before_its_step_and_the_first_gradients():
    parameters, batches = make_parameters(WORKLOAD), make_batches(WORKLOAD, 3)
    training = train(WORKLOAD, parameters, batches)
    loss, gradients = loss_and_gradients(WORKLOAD, parameters, batches[0])
    assert training.losses[0] == loss
    assert len(training.losses) == 3
    for name, gradient in gradients.items():
        np.testing.assert_array_equal(training.gradients[name], gradient)
    halfway = train(WORKLOAD, parameters, batches[:2]).parameters
    assert training.losses[2] == loss_and_gradients(WORKLOAD, halfway, batches[2])[0]


def test_the_same_batch_again_and_again_is_learnt():
    [batch] = make_batches(WORKLOAD, 1)
    losses = train(WORKLOAD, make_parameters(WORKLOAD), [batch] * 30).losses
    assert all(later < earlier for earlier, later in itertools.pairwise(losses))


def test_two_biases_move_their_sum_twice_as_far_and_nothing_else():
    parameters, batches = make_parameters(WORKLOAD), make_batches(WORKLOAD, 1)
    one, two = (train(WORKLOAD, parameters, batches, biases).parameters for biases in (1, 2))
    for name, start in parameters.items():
        factor = 2 if name in ("layer0.fwd.b", "layer1.fwd.b") else 1
        np.testing.assert_allclose(two[name] - start, factor * (one[name] - start), rtol=1e-9, err_msg=name)
        assert (one[name] != start).any()
