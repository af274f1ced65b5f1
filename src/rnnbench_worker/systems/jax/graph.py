"""JAX's graphs: the jaxpr that a jitted function is traced to, and the HLO it is lowered to."""

import weakref

import jax

from rnnbench_worker.graph import EVERY_CALL, FIRST_CALL, Graph, no_graph
from rnnbench_worker.graph_hlo import hlo_graph


def graphs(job, make):
    program, fed = make()
    if job["phase"] == "train":
        function, arguments = program._train, (program._parameters, program._moments, fed)
    else:
        function, arguments = program._forward, (program._parameters, fed)
    if not hasattr(function, "trace"):
        return [record_operators(lambda: function(*arguments))]
    return traced_graphs(function.trace(*arguments))


def traced_graphs(traced):
    lowered = traced.lower()
    return [jaxpr_graph(traced.jaxpr), hlo_graph(lowered.compiler_ir("hlo").as_hlo_text(), FIRST_CALL)]


def jaxpr_graph(closed):
    return fill(Graph("jaxpr", FIRST_CALL, str(closed)), closed)


def fill(graph, jaxpr):
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    inputs = list(jaxpr.constvars) + list(jaxpr.invars)
    named = getattr(getattr(jaxpr, "debug_info", None), "arg_names", None) or ()
    names = [str(name or "") for name in named] if len(named) == len(inputs) else [""] * len(inputs)
    places = {variable: graph.node("input", name) for variable, name in zip(inputs, names)}
    for equation in jaxpr.eqns:
        sources = [variable for variable in equation.invars if not hasattr(variable, "val")]  # literals are in place
        # A function that is called shows its own name; a primitive has none.
        name = str(equation.params.get("name", ""))
        place = graph.node(equation.primitive.name, name, [places[source] for source in sources])
        places.update((variable, place) for variable in equation.outvars)
        for role, inner in bodies_of(equation.params):
            graph.body(place, role, fill(Graph("jaxpr", FIRST_CALL), inner))
    return graph


def bodies_of(parameters):
    """Whatever of an equation's parameters is a jaxpr itself: of a scan, a branch, a function called."""
    for role, value in sorted(parameters.items()):
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if hasattr(getattr(one, "jaxpr", one), "eqns"):
                yield role, one


def record_operators(call):
    """Nothing is traced as a whole: the operators are taken down as they run, each where it is dispatched."""
    from jax._src import core

    if not hasattr(core, "EvalTrace"):
        return no_graph("JAX runs operator by operator; this version does not let itself be watched")
    note = "JAX keeps no graph without jit: these are the operators that ran, in their order"
    graph = Graph("operators as they ran", EVERY_CALL, note=note)
    places, process = {}, core.EvalTrace.process_primitive

    def watched(trace, primitive, arguments, parameters):
        results = process(trace, primitive, arguments, parameters)
        sources = sorted({places[id(argument)] for argument in arguments if id(argument) in places})
        place = graph.node(primitive.name, str(parameters.get("name", "")), sources)
        outputs = results if isinstance(results, (list, tuple)) else [results]
        for output in outputs:
            places[id(output)] = place
            weakref.finalize(output, forget, id(output), place)
        return results

    def forget(identity, place):
        """Another array may be given the identity of one that is gone."""
        if places.get(identity) == place:
            del places[identity]

    core.EvalTrace.process_primitive = watched
    try:
        jax.block_until_ready(call())
    finally:
        core.EvalTrace.process_primitive = process
    return graph
