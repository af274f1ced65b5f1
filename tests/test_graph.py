"""`rnnbench graph` with the real frameworks: what each builds for two steps of a small LSTM, counted."""

import pytest

from rnnbench.graph.capture import Graph

STEPS = 2
WORKLOAD = f"ce-short[batch=3,classes=4,features=5,hidden=6,steps={STEPS}]"
#: A step of the LSTM has two: one for the gate g, one for the output.
TANHS = 2 * STEPS

BAD = {
    "no system": ((), "name a system"),
    "an unknown system": (("pytorch/fine/eagre",), "nearest: pytorch/fine/eager"),
    "an unknown format": (("pytorch/fine/eager", "--format", "png"), "allowed: text, table, json, svg, dot"),
    "a drawing of many": (("pytorch/*", "--format", "svg"), "use --format table or json"),
    "an unknown workload": (("pytorch/fine/eager", "-w", "ce-shrt"), "nearest: ce-short"),
    "an unknown phase": (("pytorch/fine/eager", "--phase", "back"), "allowed: forward, train"),
    "a story of other systems": (("pytorch/fine/eager", "--story"), "--out FILE only"),
    "what is not offered": (("pytorch/stack/eager", "-w", "elman-step"), "single step"),
    "no time": (("pytorch/fine/eager", "--limit", "0"), "at least 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_what_is_allowed(call, private_folders, case):
    arguments, hint = BAD[case]
    answer = call("graph", *arguments)
    assert answer.code == 2
    assert hint in answer.err


def test_a_framework_that_offers_no_graphs_says_so(call, sabotage):
    answer = call("graph", "sabotage/packed/honest", "-w", WORKLOAD, "--full")
    assert answer.code == 0, answer.err
    assert "has no code that captures graphs" in answer.out


# --- the frameworks -------------------------------------------------------------------------------------


@pytest.fixture
def graphs_of(call, environment_of):
    """The graphs of each system, by form."""

    def take(framework, *systems, code=0):
        environment_of(framework)
        answer = call("graph", *systems, "-w", WORKLOAD, "--full", "--format", "json")
        assert answer.code == code, answer.err
        found = {}
        for one in answer.json:
            assert one["outcome"] == "ok", one["reason"]
            graphs = {graph["form"]: graph for graph in one["graphs"]}
            found[one["case"]["system"].partition("/")[2]] = graphs
            for graph in one["graphs"]:
                assert graph["nodes"] == sum(graph["kinds"].values())
        return found

    return take


def count(graph, kind):
    return graph["kinds"].get(kind, 0)


@pytest.mark.slow
@pytest.mark.torch
def test_pytorch(graphs_of):
    systems = ["fine/eager", "packed/script", "packed/trace", "packed/compile", "packed/compile-scan", "stack/eager"]
    found = graphs_of("pytorch", *(f"pytorch/{name}" for name in systems))
    eager = found["fine/eager"]["autograd graph"]
    assert eager["built"] == "at every call"
    assert count(eager, "TanhBackward0") == TANHS
    assert count(eager, "MmBackward0") == 8 * STEPS + 1  # two for each gate, and the head
    assert "stack.layers.0.0.cell.w_i" in eager["names"]
    script = found["packed/script"]["TorchScript IR"]
    assert script["built"] == "at the first call"
    assert count(script, "prim::Loop") >= 1
    assert count(script, "aten::tanh") == 2  # however long the sequence is
    trace = found["packed/trace"]["TorchScript IR"]
    assert count(trace, "prim::Loop") == 0
    assert count(trace, "aten::tanh") == TANHS
    # Autograd sees fewer operators of an optimised program than of an eager one.
    assert found["packed/script"]["autograd graph"]["nodes"] < eager["nodes"]
    compiled = found["packed/compile"]
    assert list(compiled) == [
        "FX graph, as Dynamo records it",
        "FX graph, forward, as the compiler gets it",
        "FX graph, backward, as the compiler gets it",
        "autograd graph",
    ]
    assert count(compiled["FX graph, forward, as the compiler gets it"], "aten.tanh.default") == TANHS
    assert compiled["FX graph, backward, as the compiler gets it"]["nodes"] > 10
    assert count(compiled["autograd graph"], "TanhBackward0") == 0
    scan = found["packed/compile-scan"]["FX graph, as Dynamo records it"]
    assert count(scan, "scan") == 1
    assert count(scan, "tanh") == 2
    stack = found["stack/eager"]["autograd graph"]
    assert sum("rnn" in kind.lower() for kind in stack["operators"]) == 1


@pytest.mark.slow
def test_tensorflow(graphs_of):
    systems = ["packed/eager", "packed/graph", "packed/graph-while", "packed/xla"]
    found = graphs_of("tensorflow", *(f"tensorflow/{name}" for name in systems))
    eager = found["packed/eager"]["operators as they ran"]
    assert "keeps no graph" in eager["note"]
    assert count(eager, "Tanh") == TANHS
    graph = found["packed/graph"]["tf.Graph"]
    assert count(graph, "Tanh") == TANHS
    assert count(graph, "TanhGrad") == TANHS
    loop = found["packed/graph-while"]["tf.Graph"]
    assert count(loop, "Tanh") == 2
    assert {"While", "StatelessWhile"} & set(loop["kinds"])
    assert loop["bodies"]
    xla = found["packed/xla"]
    assert count(xla["HLO"], "tanh") == TANHS
    assert count(xla["tf.Graph"], "Tanh") == TANHS


@pytest.mark.slow
def test_jax(graphs_of):
    found = graphs_of("jax", "jax/packed/eager", "jax/packed/jit-unrolled", "jax/packed/jit-scan")
    eager = found["packed/eager"]["operators as they ran"]
    assert "keeps no graph" in eager["note"]
    assert eager["nodes"] > 20
    unrolled = found["packed/jit-unrolled"]
    assert count(unrolled["jaxpr"], "tanh") == TANHS
    assert count(unrolled["HLO"], "tanh") == TANHS
    scan = found["packed/jit-scan"]["jaxpr"]
    assert count(scan, "scan") == 2  # forward and backward pass
    assert count(scan, "tanh") == 2


@pytest.mark.slow
def test_pytensor_and_the_engines(graphs_of):
    scan = graphs_of("pytensor", "pytensor/packed/scan-jax")["packed/scan-jax"]["PyTensor graph"]
    assert count(scan, "Scan") == 2  # forward and backward pass
    assert len(scan["bodies"]) >= 2
    onnx = graphs_of("onnxruntime", "onnxruntime/stack/*")
    assert [count(graph, "LSTM") for forms in onnx.values() for graph in forms.values()] == [1]
    openvino = graphs_of("openvino", "openvino/stack/*")
    (runtime,) = [graph for forms in openvino.values() for graph in forms.values()]
    # Whether its plug-in has a kernel for the sequence or computes it step by step depends on the machine.
    assert [kind for kind in runtime["kinds"] if kind.startswith(("RNN", "LSTM", "TensorIterator"))] != []


@pytest.mark.slow
def test_keras_flax_and_equinox(graphs_of):
    torch = graphs_of("keras-torch", "keras-torch/layer/eager")["layer/eager"]["autograd graph"]
    assert count(torch, "TanhBackward0") == TANHS
    tensorflow = graphs_of("keras-tensorflow", "keras-tensorflow/layer/graph-unrolled")["layer/graph-unrolled"]
    assert count(tensorflow["tf.Graph"], "Tanh") == TANHS
    jax = graphs_of("keras-jax", "keras-jax/layer/jit")["layer/jit"]["jaxpr"]
    assert count(jax, "scan") == 2
    for framework in ("flax", "equinox"):
        cell = graphs_of(framework, f"{framework}/cell/jit-scan")["cell/jit-scan"]["jaxpr"]
        assert count(cell, "scan") == 2


@pytest.mark.slow
@pytest.mark.torch
def test_a_drawing_is_written_and_forward_eagerly_there_is_nothing_to_draw(call, pytorch, tmp_path):
    place = tmp_path / "graph.svg"
    answer = call("graph", "pytorch/fine/script", "-w", "elman-step", "--format", "svg", "--out", str(place))
    assert answer.code == 0, answer.err
    assert place.read_text().count('class="node') >= 10
    nothing = call("graph", "pytorch/fine/eager", "-w", WORKLOAD, "--full", "--phase", "forward")
    assert nothing.code == 0
    assert "keeps no graph" in nothing.out


@pytest.mark.slow
@pytest.mark.torch
def test_a_new_shape_is_tried_when_asked(call, pytorch):
    answer = call("graph", "pytorch/packed/trace", "-w", WORKLOAD, "--full", "--reshape")
    assert answer.code == 0, answer.err
    assert "new length: another program needed" in answer.out  # the length of the loop is baked in


def test_titles_say_where_a_graph_belongs():
    inner = Graph(form="f", built="b", operators=["x"], names=[""], edges=[])
    outer = Graph(form="f", built="b", operators=["loop"], names=["l"], edges=[])
    outer.bodies = [type("Body", (), {"of": 0, "role": "body", "graph": inner})()]
    assert [title for title, _ in outer.parts()] == ["f", "body of loop l"]
