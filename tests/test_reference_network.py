"""The whole network: its gradients, its shapes, and sequences of different lengths in one batch."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnbench.domain.catalog import parse_workload, validated
from rnnbench.domain.workload import Workload, parameter_shapes
from rnnbench.reference import network
from rnnbench.reference.inputs import make_batches, make_parameters

SPEECH = parse_workload("bi-ctc-long[batch=4,steps=9,shortest=4,features=3,hidden=3,layers=2,classes=4,labels=2]")


@st.composite
def workloads(draw):
    """Small networks of every kind."""
    kind = draw(st.sampled_from(["language-model", "last-step", "every-step", "ctc", "ctc-with-lengths"]))
    fields = {
        "batch": draw(st.integers(1, 3)),
        "steps": draw(st.integers(3, 6)),
        "hidden": draw(st.integers(1, 4)),
        "layers": draw(st.integers(1, 3)),
        "bidirectional": draw(st.booleans()),
        "head_bias": draw(st.booleans()),
        "classes": 5,
        "head_on": "last-step" if kind == "last-step" else "every-step",
    }
    if kind == "language-model":
        fields |= {"vocabulary": 5, "embedding": 2}
    else:
        fields |= {"features": draw(st.integers(1, 4))}
    if kind.startswith("ctc"):
        fields |= {"loss": "ctc", "labels": 2, "shortest": 3 if kind == "ctc-with-lengths" else 0}
    return validated(Workload(name=kind, **fields))


def exact_parameters(workload, seed):
    return {name: array.astype(np.float64) for name, array in make_parameters(workload, seed).items()}


@settings(max_examples=60, deadline=None)
@given(workload=workloads(), seed=st.integers(0, 999))
def test_every_parameters_gradient_is_that_of_finite_differences(workload, seed):
    parameters = exact_parameters(workload, seed)
    [batch] = make_batches(workload, 1, seed)
    _, gradients = network.loss_and_gradients(workload, parameters, batch)
    random = np.random.default_rng(seed)
    for name, array in parameters.items():
        # The slope along one random direction, for one parameter at a time, so that errors cannot cancel.
        direction = random.normal(size=array.shape)

        def along(step, name=name, direction=direction):
            return network.loss(workload, parameters | {name: parameters[name] + step * direction}, batch)

        slope = (along(1e-5) - along(-1e-5)) / 2e-5
        assert np.sum(gradients[name] * direction) == pytest.approx(slope, rel=1e-6, abs=1e-8), name


@settings(max_examples=20, deadline=None)
@given(workload=workloads())
def test_shapes_follow_from_the_workload_and_both_functions_give_the_same_loss(workload):
    parameters = make_parameters(workload)
    [batch] = make_batches(workload, 1)
    logits = network.logits(workload, parameters, batch)
    loss, gradients = network.loss_and_gradients(workload, parameters, batch)
    every_step = workload.head_on == "every-step"
    assert logits.shape == (workload.batch, *([workload.steps] if every_step else []), workload.classes)
    assert {name: array.shape for name, array in gradients.items()} == parameter_shapes(workload)
    assert {logits.dtype, *(array.dtype for array in gradients.values())} == {np.dtype(np.float64)}
    assert loss == network.loss(workload, parameters, batch)


def test_sequences_of_different_lengths_give_the_same_as_each_one_alone():
    parameters = exact_parameters(SPEECH, 0)
    [batch] = make_batches(SPEECH, 1)
    together = network.logits(SPEECH, parameters, batch)
    loss, gradients = network.loss_and_gradients(SPEECH, parameters, batch)
    alone = []
    for row, length in enumerate(batch["lengths"]):
        single = msgspec.structs.replace(SPEECH, batch=1, steps=int(length), shortest=0)
        sequence = {
            "inputs": batch["inputs"][row : row + 1, :length],
            "targets": batch["targets"][row : row + 1],
        }
        np.testing.assert_allclose(together[row, :length], network.logits(single, parameters, sequence)[0])
        alone.append(network.loss_and_gradients(single, parameters, sequence))
    assert len(set(batch["lengths"])) > 1
    assert loss == pytest.approx(np.mean([value for value, _ in alone]))
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, np.mean([found[name] for _, found in alone], axis=0), atol=1e-12)


def test_noise_beyond_a_sequences_end_has_no_effect():
    parameters = make_parameters(SPEECH)
    [batch] = make_batches(SPEECH, 1)
    inputs = batch["inputs"].copy()
    inputs[np.arange(SPEECH.steps) >= batch["lengths"][:, None]] = 99.0
    assert not np.array_equal(inputs, batch["inputs"])
    assert network.loss(SPEECH, parameters, batch | {"inputs": inputs}) == network.loss(SPEECH, parameters, batch)


def test_the_forward_direction_comes_first_in_the_joined_outputs():
    """At the last step, the backward output depends on that step only, the forward output on all steps."""
    workload = parse_workload("bi-ce-long[batch=2,steps=4,features=3,hidden=2,layers=1,classes=3]")
    parameters = make_parameters(workload)
    [batch] = make_batches(workload, 1)
    changed = batch | {"inputs": batch["inputs"].copy()}
    changed["inputs"][:, 0] = 0.0
    for part, same in ((slice(0, 2), False), (slice(2, 4), True)):
        reading = dict(parameters, **{"head.w": np.zeros_like(parameters["head.w"])})
        reading["head.w"][part] = parameters["head.w"][part]
        before, after = (network.logits(workload, reading, data) for data in (batch, changed))
        assert np.array_equal(before, after) == same


def test_an_untrained_language_model_does_little_better_or_worse_than_guessing():
    workload = parse_workload("ptb-lm[batch=4,steps=5,vocabulary=30,embedding=4,hidden=4]")
    [batch] = make_batches(workload, 1)
    assert network.loss(workload, make_parameters(workload), batch) == pytest.approx(np.log(30), rel=0.2)


@pytest.mark.parametrize("name", ["ptb-lm[batch=5,steps=4,hidden=3,vocabulary=7,classes=7,embedding=2]", SPEECH.name])
def test_a_batch_in_parts_and_one_with_shares_is_the_whole_batch(name, monkeypatch):
    workload = parse_workload(name)
    parameters = exact_parameters(workload, 0)
    [batch] = make_batches(workload, 1, 0)
    loss, gradients = network.loss_and_gradients(workload, parameters, batch)

    def same(found):
        assert found[0] == pytest.approx(loss, rel=1e-12)
        for key, value in gradients.items():
            np.testing.assert_allclose(found[1][key], value, rtol=1e-9, atol=1e-12)

    monkeypatch.setattr(network, "sequences_at_once", lambda workload: 2)
    same(network.loss_and_gradients(workload, parameters, batch))
    # Every sequence twice, with shares that make up for it.
    twice = {key: np.concatenate([value, value]) for key, value in batch.items()}
    count = len(batch["inputs"])
    shares = np.concatenate([np.full(count, 0.75), np.full(count, 0.25)]) / count
    same(network.loss_and_gradients(workload, parameters, twice, shares))
