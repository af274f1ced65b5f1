"""PyTensor's graph: the one of symbols, after its rewrites, with the inner graphs of its scans."""

from rnnbench_worker.graph import FIRST_CALL, Graph


def graphs(job, make):
    program, fed = make()
    (program.train if job["phase"] == "train" else program.forward)(fed)
    return [fill(Graph("PyTensor graph", FIRST_CALL), program._function.maker.fgraph)]


def fill(graph, function):
    places = {}
    for value in function.inputs:
        places[value] = graph.node("input", str(value.name or ""))
    for node in function.toposort():
        sources = [places[value] for value in node.inputs if value in places]
        # An element-wise operator that holds several: its own name says which.
        place = graph.node(type(node.op).__name__, str(node.op)[:60], sources)
        places.update((value, place) for value in node.outputs)
        if hasattr(node.op, "fgraph"):
            graph.body(place, "body", fill(Graph("PyTensor graph", FIRST_CALL), node.op.fgraph))
    return graph
