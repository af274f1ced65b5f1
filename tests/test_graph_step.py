"""The one step of Lazarus (2019): what the reference computes, which systems offer it, and that all compute it."""

import numpy as np
import pytest

import rnnbench
from rnnbench.domain.catalog import CATALOG, parse_workload
from rnnbench.reference.inputs import make_batches, make_parameters
from rnnbench.reference.network import logits, loss, loss_and_gradients
from systems_helpers import not_verified, verdicts

STEP = parse_workload("elman-step[batch=3,features=4,hidden=5]")
SYSTEMS = [
    *("pytorch/fine/eager", "pytorch/fine/script", "pytorch/fine/trace"),
    *("tensorflow/fine/eager", "tensorflow/fine/graph"),
    *("jax/fine/eager", "jax/fine/jit-unrolled"),
]


def test_its_shapes_are_the_slides_own():
    shapes = {name: array.shape for name, array in make_parameters(CATALOG["elman-step"]).items()}
    assert shapes == {"W_h": (20, 20), "W_x": (20, 10)}
    batch = make_batches(CATALOG["elman-step"], 1)[0]
    assert {name: array.shape for name, array in batch.items()} == {"inputs": (1, 10), "state": (1, 20)}


def test_the_reference_is_the_slides_six_statements():
    weights, batch = make_parameters(STEP), make_batches(STEP, 1)[0]
    h2h = weights["W_h"].astype(float) @ batch["state"].T
    i2h = weights["W_x"].astype(float) @ batch["inputs"].T
    np.testing.assert_allclose(logits(STEP, weights, batch), np.tanh(h2h + i2h))
    assert loss(STEP, weights, batch) == pytest.approx(np.tanh(h2h + i2h).sum())


def test_its_gradients_are_those_of_finite_differences():
    weights = {name: array.astype(float) for name, array in make_parameters(STEP).items()}
    batch = make_batches(STEP, 1)[0]
    _, gradients = loss_and_gradients(STEP, weights, batch)
    for name, gradient in gradients.items():
        for index in np.ndindex(gradient.shape):
            moved = []
            for sign in (1, -1):
                bumped = {key: array.copy() for key, array in weights.items()}
                bumped[name][index] += sign * 1e-6
                moved.append(loss(STEP, bumped, batch))
            assert gradient[index] == pytest.approx((moved[0] - moved[1]) / 2e-6, abs=1e-8)


def test_it_is_not_timed(call, private_folders):
    answer = call("run", "pytorch/fine/eager", "-w", "elman-step", "--device", "cpu")
    assert answer.code == 2
    assert "elman-step cannot be timed" in answer.err
    assert "rnnbench graph" in answer.err


def test_only_the_systems_of_the_seeds_question_offer_it():
    plan = rnnbench.make_plan([], [CATALOG["elman-step"]], phases=["train"], device="cpu")
    assert sorted(case.system for case in plan.cases) == sorted(SYSTEMS)


@pytest.mark.slow
def test_all_of_them_compute_what_the_reference_computes(environment_of):
    found = verdicts(rnnbench.make_plan(SYSTEMS, ["elman-step"], device="cpu"))
    assert len(found) == 2 * len(SYSTEMS)
    assert not_verified(found) == []
