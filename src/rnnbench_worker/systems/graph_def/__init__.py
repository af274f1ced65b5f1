"""A GraphDef, the form in which every TensorFlow hands out its graph, as nodes and edges. Code only."""

from rnnbench_worker.graph import FIRST_CALL, Graph


def definition_graph(definition, note=""):
    """With the bodies of the functions that its nodes call."""
    functions = {function.signature.name: function for function in definition.library.function}
    # Not the definition's own text: it spells out every attribute of every node.
    return fill(Graph("tf.Graph", FIRST_CALL, note=note), definition.node, functions, ())


def fill(graph, nodes, functions, inside):
    places = {}
    for node in nodes:
        places[node.name] = graph.node(node.op, node.name)
    for node in nodes:
        for name in sources_of(node):
            if name in places:  # otherwise an argument of the function
                graph.edge(places[name], places[node.name])
        for role, called in sorted(node.attr.items()):
            name = called.func.name
            if name in functions and name not in inside:
                body = Graph("tf.Graph", FIRST_CALL)
                fill(body, functions[name].node_def, functions, inside + (name,))
                graph.body(places[node.name], role, body)
    return graph


def sources_of(node):
    """The names of the nodes that it reads, or waits for."""
    return [source.lstrip("^").split(":")[0] for source in node.input]
