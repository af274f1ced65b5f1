"""A compiled function of Theano's, or of PyTensor's, which grew out of it: its graph, its profile, its compilations.

The same in both but for names, so that neither is imported here.
"""

from rnnbench_worker.graph import FIRST_CALL, Graph
from rnnbench_worker.profile import BATCHES
from rnnbench_worker.timeline import Timeline, end_to_end


def function_graph(form, function):
    """After all rewriting, with the inner graphs of its scans."""
    return fill(Graph(form, FIRST_CALL), function.maker.fgraph)


def fill(graph, function):
    places = {}
    for value in function.inputs:
        places[value] = graph.node("input", str(value.name or ""))
    for node in function.toposort():
        sources = [places[value] for value in node.inputs if value in places]
        # An element-wise operator that holds several: its own name says which.
        place = graph.node(type(node.op).__name__, str(node.op)[:60], sources)
        places.update((value, place) for value in node.outputs)
        inner = inner_graph(node.op)
        if inner is not None:
            graph.body(place, "body", fill(Graph(graph.fields["form"], FIRST_CALL), inner))
    return graph


def inner_graph(op):
    """PyTensor's operators hold it themselves, Theano's scan has it in the function that it has compiled."""
    if hasattr(op, "fgraph"):
        return op.fgraph
    return op.fn.maker.fgraph if is_scan(op) else None


def is_scan(op):
    return type(op).__name__ == "Scan"


def watch_function(function, block):
    """By the function's own profile: `config.profile` was on when it was compiled."""
    for one in everything_below(function):
        one.reset()
    block()
    totals = [
        (type(node.op).__name__, count, stats.apply_time[key])
        for stats in everything_below(function)
        for key, count in stats.apply_callcount.items()
        for node in [key[-1] if isinstance(key, tuple) else key]  # PyTensor says also in which graph it is
        # What a loop runs is counted by itself: the loop is not an operator beside it.
        if not is_scan(node.op)
    ]
    assert function.profile.fct_callcount == BATCHES
    return Timeline(host=end_to_end(totals), device=[], batches=BATCHES, file="")


def everything_below(function):
    """The profiles of a function and of the loops in it."""
    yield function.profile
    for node in function.maker.fgraph.toposort():
        if is_scan(node.op):
            for profile in everything_below(node.op.fn):
                yield profile
