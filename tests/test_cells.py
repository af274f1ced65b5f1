"""Cells as files: their derivatives in float64, what follows from their weights, and every framework that runs them."""

import numpy as np
import pytest

import rnnbench
import rnnbench_cells
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.workload import flops, parameter_count, parameter_shapes
from rnnbench.errors import UserError
from rnnbench.manifests import manifests
from rnnbench.reference import lstm, network, recurrent
from rnnbench.reference.inputs import make_batches, make_parameters
from rnnbench.reference.tape import Operators, Value, run_backwards

SMALL = "batch=3,hidden=4,steps=6,layers=2,labels=2,features=3,classes=5,shortest=4"


def small(cell):
    return parse_workload(f"bi-ctc-long[cell={cell},{SMALL}]")


@pytest.mark.parametrize("cell", rnnbench_cells.NAMES)
def test_gradients_are_those_of_finite_differences(cell):
    workload = small(cell)
    parameters = {name: value.astype(np.float64) for name, value in make_parameters(workload).items()}
    (batch,) = make_batches(workload, 1)
    _, gradients = network.loss_and_gradients(workload, parameters, batch)
    generator = np.random.default_rng(0)
    for name, gradient in gradients.items():
        direction = generator.standard_normal(gradient.shape)
        losses = [
            network.loss(workload, {**parameters, name: parameters[name] + step * direction}, batch)
            for step in (1e-5, -1e-5)
        ]
        along = float((gradient * direction).sum())
        assert (losses[0] - losses[1]) / 2e-5 == pytest.approx(along, rel=1e-4, abs=1e-8), name
        assert np.abs(gradient).max() > 0, f"{name} takes no part"


@pytest.mark.parametrize("reverse", [False, True])
def test_the_tape_gives_the_lstm_that_was_written_by_hand(reverse):
    generator = np.random.default_rng(0)
    weights = {name: generator.standard_normal(shape) for name, shape in lstm_cell().parameters(5, 4).items()}
    x, d_outputs = generator.standard_normal((7, 3, 5)), generator.standard_normal((7, 3, 4))
    mask = np.arange(7)[:, None] < np.array([7, 2, 5])
    expected, trace = lstm.forward(x, weights["w"], weights["u"], weights["b"], mask, reverse)
    found, tape = recurrent.forward(lstm_cell(), weights, x, mask, reverse, hidden=4)
    assert found == pytest.approx(expected, abs=1e-14)
    by_hand = lstm.backward(trace, d_outputs)
    d_x, gradients = recurrent.backward(tape, d_outputs)
    assert d_x == pytest.approx(by_hand.x, abs=1e-13)
    for name in "wub":
        assert gradients[name] == pytest.approx(getattr(by_hand, name), abs=1e-13)


def lstm_cell():
    return rnnbench_cells.find("lstm")


OPERATORS = {
    "relu": Operators.relu,
    "log": lambda a: Operators.log(Operators.exp(a) + 1.0),
    "concat": lambda a: Operators.concat([a, a * 2.0]),
    "minimum": lambda a: Operators.minimum(a, 0.1),
    "maximum": lambda a: Operators.maximum(0.1, a),
    "quotient": lambda a: 2.0 / (a * a + 1.0),
    "negative": lambda a: 1.0 - (-a),
    "softplus": Operators.softplus,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_has_its_derivative(name):
    array = np.random.default_rng(0).standard_normal((3, 4))
    value = Value(array)
    result = OPERATORS[name](value)
    direction = np.random.default_rng(1).standard_normal(result.array.shape)
    run_backwards([(result, direction)])
    for place in np.ndindex(array.shape):
        moved = [array.copy(), array.copy()]
        moved[0][place] += 1e-6
        moved[1][place] -= 1e-6
        up, down = (float((OPERATORS[name](Value(one)).array * direction).sum()) for one in moved)
        assert value.gradient[place] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-7)


def test_parameters_and_operations_follow_the_cell():
    base = parse_workload("ce-short")
    gru = parse_workload("ce-short[cell=gru]")
    assert gru.name == "ce-short[cell=gru]"
    assert parse_workload("ce-short[cell=lstm]") == base
    assert parameter_shapes(base)["layer0.fwd.w"] == (123, 1280)
    assert parameter_shapes(gru)["layer0.fwd.w"] == (123, 960)
    head = 320 * 10
    assert parameter_count(gru) == (123 + 320) * 960 + 4 * 320 + head
    assert parameter_count(gru, biases=2) == parameter_count(gru) + 2 * 320
    steps = 64 * 100
    assert flops(gru, "forward") == 2 * steps * (123 + 320) * 960 + 2 * 64 * head


def test_a_cell_that_does_not_exist():
    with pytest.raises(UserError, match="names no cell") as raised:
        parse_workload("ce-short[cell=gruu]")
    assert "gru-before" in raised.value.hint


def test_rows_without_a_cell_say_why():
    systems = ["pytorch/fine/eager", "pytorch/stack/eager", "pytorch/packed/eager", "pytorch/cell/eager"]
    plan = rnnbench.make_plan(systems, ["ce-short[cell=peephole]"], device="cpu", phases=["forward"])
    assert [case.system for case in plan.cases] == ["pytorch/packed/eager"]
    reasons = {left.case.system: left.reason for left in plan.left_out}
    assert reasons == {
        "pytorch/fine/eager": "only the LSTM is written out gate by gate; packed runs peephole as its file says",
        "pytorch/cell/eager": "the framework's cell that it calls does not compute peephole",
        "pytorch/stack/eager": "the vendor's kernel that it calls does not compute peephole",
    }


# --- in the frameworks ---

SYSTEMS = {
    "pytorch": ["pytorch/packed/eager", "pytorch/cell/eager", "pytorch/stack/eager"],
    "jax": ["jax/packed/jit-scan"],
    "tensorflow": ["tensorflow/packed/graph-while"],
    "keras-jax": ["keras-jax/packed/jit"],
    "pytensor": ["pytensor/packed/scan-jax"],
}
BOTH_WAYS = f"bi-ctc-long[cell=slstm,{SMALL}]"  # four states, two directions, lengths


def not_verified(systems, workloads):
    plan = rnnbench.make_plan(systems, workloads, device="cpu")
    assert {case.workload for case in plan.cases} == {parse_workload(one).name for one in workloads}
    found = rnnbench.verify_plan(plan, use_cache=False, threads=1).verifications
    assert len(found) == len(plan.cases)
    return [f"{one.case.system} on {one.case.workload}: {one.reason}" for one in found if one.verdict != "verified"]


@pytest.mark.slow
@pytest.mark.parametrize("framework", SYSTEMS)
def test_a_framework_computes_every_cell(framework, environment_of, keep_compiled):
    environment_of(framework)
    workloads = [f"ce-short[cell={cell}]" for cell in rnnbench_cells.NAMES]
    assert not_verified(SYSTEMS[framework], [*workloads, BOTH_WAYS]) == []


@pytest.mark.slow
@pytest.mark.torch
def test_rnnfuse_computes_cells_of_files(environment_of, keep_compiled):
    environment_of("pytorch")
    assert not_verified(["pytorch/packed/rnnfuse"], ["ce-short[cell=peephole]", "ce-short[cell=gru-before]"]) == []


@pytest.mark.slow
@pytest.mark.torch
def test_torchscript_compiles_cells_that_were_printed(environment_of):
    environment_of("pytorch")
    assert not_verified(["pytorch/packed/script"], [BOTH_WAYS]) == []
    assert not_verified(["pytorch/cell/script"], ["ce-short[cell=gru]"]) == []


#: Rows that call a framework's own layer or cell, and one that it has besides the LSTM.
VENDORS = {
    "keras-jax": ("keras-jax/layer/jit", "gru"),
    "flax": ("flax/cell/jit-scan", "elman"),
    "equinox": ("equinox/cell/jit-scan", "gru"),
    "onnxruntime": ("onnxruntime/stack/session", "gru"),
    "openvino": ("openvino/stack/compiled-model", "elman"),
}


@pytest.mark.slow
@pytest.mark.parametrize("framework", VENDORS)
def test_a_frameworks_own_layer_computes_the_same(framework, environment_of):
    environment_of(framework)
    system, cell = VENDORS[framework]
    assert not_verified([system], [f"ce-short[cell={cell}]"]) == []


@pytest.mark.parametrize(
    ("system", "cell", "reason"),
    [
        ("flax/cell/jit-scan", "gru", "flax.nnx.GRUCell has no bias within the reset gate's product"),
        ("equinox/cell/jit-scan", "elman", "the framework's cell that it calls does not compute elman"),
        ("keras-jax/layer/jit", "gru-before", "the framework's layer that it calls does not compute gru-before"),
        ("pytorch/packed/compile-scan", "gru", "this execution has no gru"),
    ],
)
def test_a_row_without_a_cell_says_why(system, cell, reason):
    plan = rnnbench.make_plan([system], [f"ce-short[cell={cell}]"], device="cpu", phases=["forward"])
    assert [one.reason for one in plan.left_out] == [reason]


def test_a_second_bias_counts_only_for_the_cells_that_have_it():
    (keras,) = [system for system in manifests()["keras-jax"].system if system.name == "keras-jax/layer/jit"]
    assert [keras.for_cell(cell).biases for cell in ("lstm", "gru", "elman")] == [1, 2, 1]
