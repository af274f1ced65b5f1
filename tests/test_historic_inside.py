"""Frameworks of 2018 from inside: the graphs they build, the operators of a batch, what a new shape does."""

import pytest

import rnnbench
from historic_helpers import HISTORIC, environment_or_skip
from test_profile_frameworks import STEPS, TINY, count, profiles
from test_retrace import outcomes, retraces

pytestmark = [pytest.mark.historic, pytest.mark.slow]

TENSORFLOW_1 = ["tensorflow1/packed/graph-while", "tensorflow1/cell/graph-while", "tensorflow1/layer/graph"]
ON_TENSORFLOW = [*TENSORFLOW_1, "keras2-tensorflow/layer/graph"]
#: TensorFlow's cell multiplies x and h at once, Keras each by itself for each gate.
PRODUCTS_OF_A_STEP = {"tensorflow1/packed/graph-while": 1, "keras2-tensorflow/layer/graph": 8}
#: Lasagne multiplies all x before the loop, and the first states by ones to have as many as the batch.
PRODUCTS_ON_THEANO = {"lasagne/packed/scan-c": 1 + 2 + STEPS + 1, "keras2-theano/layer/scan-c": 8 * STEPS + 1}


@pytest.fixture(autouse=True)
def environments(environment_of, keep_compiled):
    for framework in HISTORIC:
        environment_or_skip(framework, environment_of)


@pytest.fixture
def graph_of(call):
    """The one graph of a system, training."""

    def take(system, workload=TINY, phase="train"):
        answer = call("graph", system, "-w", workload, "--full", "--phase", phase, "--format", "json")
        assert answer.code == 0, answer.err
        (one,) = answer.json
        assert one["outcome"] == "ok", one["reason"]
        (graph,) = one["graphs"]
        assert graph["nodes"] == sum(graph["kinds"].values())
        assert graph["built"] == "at the first call"
        return graph

    return take


def test_these_are_all_there_are():
    offered = {one.system for one in rnnbench.make_plan([f"{name}/*" for name in HISTORIC], [TINY], device="cpu").cases}
    assert {*ON_TENSORFLOW, *PRODUCTS_ON_THEANO} == offered


# --- graphs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", PRODUCTS_OF_A_STEP)
def test_a_while_loop_of_tensorflow_1_lies_flat_in_the_graph_that_a_batch_needs(graph_of, system):
    graph = graph_of(system, phase="forward")
    assert graph["form"] == "tf.Graph"
    assert graph["bodies"] == []
    assert graph["kinds"]["MatMul"] == PRODUCTS_OF_A_STEP[system] + 1  # however long the sequence is; and the head
    assert graph["kinds"]["LoopCond"] == 1
    assert graph["kinds"]["NextIteration"] == graph["kinds"]["Merge"] == graph["kinds"]["Switch"]
    # All others go on, so that a drawing shows them.
    back = {graph["operators"][source] for source, target in graph["edges"] if source > target}
    assert back == {"NextIteration"}


def test_training_is_part_of_the_graph_and_first_values_are_not(graph_of):
    graph = graph_of("tensorflow1/packed/graph-while")
    assert graph["kinds"]["MatMul"] == 3 * 2  # two gradients for each product
    assert graph["kinds"]["LoopCond"] == 2  # there and back
    assert graph["kinds"]["ApplyAdam"] >= 1
    assert "RandomUniform" not in graph["kinds"]  # which gives variables their first values, and no batch runs it
    assert "the session runs no others" in graph["note"]


def test_fused_operators_of_tensorflow_1_are_single_nodes(graph_of):
    cell, layer = graph_of("tensorflow1/cell/graph-while"), graph_of("tensorflow1/layer/graph")
    assert (cell["kinds"]["LSTMBlockCell"], cell["kinds"]["LSTMBlockCellGrad"]) == (1, 1)
    assert (layer["kinds"]["BlockLSTM"], layer["kinds"]["BlockLSTMGrad"]) == (1, 1)
    assert "LoopCond" not in layer["kinds"]


@pytest.mark.parametrize("system", PRODUCTS_ON_THEANO)
def test_a_scan_of_theano_is_a_node_with_a_graph_of_its_own(graph_of, system):
    graph = graph_of(system, phase="forward")
    assert graph["form"] == "Theano graph"
    assert graph["operators"].count("Scan") == 1
    (body,) = graph["bodies"]
    assert graph["operators"][body["of"]] == "Scan"
    assert any(kind.startswith(("Dot", "Gemm")) for kind in body["graph"]["operators"])


# --- operators of a batch -------------------------------------------------------------------------------


def test_what_tensorflow_1_runs_is_counted_and_traced(tmp_path):
    found = profiles(ON_TENSORFLOW, tmp_path)
    for system, of_a_step in PRODUCTS_OF_A_STEP.items():
        assert count(found[system], "product") == of_a_step * STEPS + 1
    assert count(found["tensorflow1/cell/graph-while"], "recurrent") == STEPS
    assert count(found["tensorflow1/layer/graph"], "recurrent") == 1
    assert all(one.trace for one in found.values())
    packed, cell, layer, _ = (found[system].operators for system in ON_TENSORFLOW)
    assert packed > cell > layer


@pytest.mark.parametrize("system", PRODUCTS_ON_THEANO)
def test_what_theano_runs_is_counted_in_its_scans_too(tmp_path, system):
    (found,) = profiles([system], tmp_path).values()
    assert count(found, "product") == PRODUCTS_ON_THEANO[system]
    assert found.trace == ""
    assert "Scan" not in {one.name for one in found.top}


# --- a new shape ----------------------------------------------------------------------------------------


def test_a_graph_of_tensorflow_1_takes_the_shape_of_its_placeholders(tmp_path):
    found = retraces(ON_TENSORFLOW, TINY, tmp_path)
    assert outcomes(found) == dict.fromkeys(ON_TENSORFLOW, ("anew", "anew"))
    assert all("Cannot feed value of shape" in one.reason for both in found.values() for one in both)


@pytest.mark.parametrize("system", PRODUCTS_ON_THEANO)
def test_a_function_of_theano_takes_any_shape(tmp_path, system):
    assert outcomes(retraces([system], TINY, tmp_path)) == {system: ("kept", "kept")}
