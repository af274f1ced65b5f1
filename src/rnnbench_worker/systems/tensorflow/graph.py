"""TensorFlow's graphs: that of a tf.function with its loops and calls, XLA's HLO; in eager mode what ran."""

import tensorflow as tf

from rnnbench_worker.graph import EVERY_CALL, FIRST_CALL, Graph, no_graph
from rnnbench_worker.graph_hlo import hlo_graph
from rnnbench_worker.systems.graph_def import definition_graph


def graphs(job, make):
    program, fed = make()
    function = program._train if job["phase"] == "train" else program._forward
    with tf.device(program._place):
        return function_graphs(function, (fed,), job["execution"].startswith("xla"))


def function_graphs(function, arguments, xla):
    """Of a tf.function, or of any other that runs eagerly."""
    if not hasattr(function, "get_concrete_function"):
        return [record_operators(lambda: function(*arguments))]
    found = [concrete_graph(function.get_concrete_function(*arguments))]
    if xla:
        found.append(hlo_graph(function.experimental_get_compiler_ir(*arguments)(stage="hlo"), FIRST_CALL))
    return found


def concrete_graph(concrete):
    return definition_graph(concrete.graph.as_graph_def())


def record_operators(call):
    """Eagerly there is no graph but the tape, which holds what gradients need until they are taken."""
    from tensorflow.python.framework import op_callbacks

    if not hasattr(op_callbacks, "add_op_callback"):
        return no_graph("TensorFlow runs operator by operator; this version does not let itself be watched")
    note = "TensorFlow keeps no graph in eager mode, only a tape: these are the operators that ran, in their order"
    graph = Graph("operators as they ran", EVERY_CALL, note=note)
    places = {}

    def watched(operator, inputs, attributes, outputs, op_name=None, graph_of=None, **others):
        sources = {places[tensor._id] for tensor in inputs if getattr(tensor, "_id", None) in places}
        name = operator.decode() if isinstance(operator, bytes) else operator  # raw operators come as bytes
        place = graph.node(name, "", sorted(sources))
        places.update((tensor._id, place) for tensor in outputs if hasattr(tensor, "_id"))

    op_callbacks.add_op_callback(watched)
    try:
        call()
    finally:
        op_callbacks.remove_op_callback(watched)
    return graph
