"""The ONNX graph that a session is given: each layer of the stack is one LSTM node."""

from rnnbench_worker.graph import FIRST_CALL, Graph
from rnnbench_worker.systems.exported.program import argument_names, example

from .export import onnx_bytes


def graphs(job, make):
    import onnx  # only here: the session does not need it

    program, _ = make()
    names = argument_names(job["workload"])
    model = onnx.load_model_from_string(onnx_bytes(program._network, example(job["workload"]), names))
    graph = Graph("ONNX graph", FIRST_CALL)
    places = {value.name: graph.node("input", value.name) for value in model.graph.input}
    for node in model.graph.node:
        place = graph.node(node.op_type, node.name, [places[name] for name in node.input if name in places])
        places.update((name, place) for name in node.output)
    return [graph]
