"""A GraphDef, the form in which every version of TensorFlow exports its graph, as nodes and edges."""

from rnnbench_worker.graph import FIRST_CALL, Graph


def definition_graph(definition, note=""):
    """The graph of a GraphDef, with the functions that its nodes call as their bodies."""
    functions = {function.signature.name: function for function in definition.library.function}
    # Without the definition's own text, which lists every attribute of every node.
    return add_nodes(Graph("tf.Graph", FIRST_CALL, note=note), definition.node, functions, ())


def add_nodes(graph, nodes, functions, callers):
    places = {}
    for node in nodes:
        places[node.name] = graph.node(node.op, node.name)
    for node in nodes:
        for name in input_names(node):
            if name in places:  # otherwise it is an argument of the function
                graph.edge(places[name], places[node.name])
        for role, called in sorted(node.attr.items()):
            name = called.func.name
            if name in functions and name not in callers:
                body = Graph("tf.Graph", FIRST_CALL)
                add_nodes(body, functions[name].node_def, functions, callers + (name,))
                graph.body(places[node.name], role, body)
    return graph


def input_names(node):
    """The names of the nodes that a node reads or waits for."""
    return [source.lstrip("^").split(":")[0] for source in node.input]
