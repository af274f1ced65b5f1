"""What JAX shows of a program: the jaxpr of a jitted function, the HLO it is lowered to, and jax.profiler's trace."""

import gzip
import json
import weakref

import jax

from rnnbench_worker.graph import EVERY_CALL, FIRST_CALL, Graph, no_graph
from rnnbench_worker.shared.xla import find_profile, hlo_graph, xla_timeline
from rnnbench_worker.timeline import write_chrome


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
    return add_equations(Graph("jaxpr", FIRST_CALL, str(closed)), closed)


def add_equations(graph, jaxpr):
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    inputs = list(jaxpr.constvars) + list(jaxpr.invars)
    named = getattr(getattr(jaxpr, "debug_info", None), "arg_names", None) or ()
    names = [str(name or "") for name in named] if len(named) == len(inputs) else [""] * len(inputs)
    places = {variable: graph.node("input", name) for variable, name in zip(inputs, names)}
    for equation in jaxpr.eqns:
        sources = [variable for variable in equation.invars if not hasattr(variable, "val")]  # without literals
        # A called function has a name; a primitive has none.
        name = str(equation.params.get("name", ""))
        place = graph.node(equation.primitive.name, name, [places[source] for source in sources])
        places.update((variable, place) for variable in equation.outvars)
        for role, inner in inner_jaxprs(equation.params):
            graph.body(place, role, add_equations(Graph("jaxpr", FIRST_CALL), inner))
    return graph


def inner_jaxprs(parameters):
    """The parameters of an equation that are jaxprs themselves: those of a scan, a branch or a called function."""
    for role, value in sorted(parameters.items()):
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if hasattr(getattr(one, "jaxpr", one), "eqns"):
                yield role, one


def record_operators(call):
    """Without jit nothing is traced as a whole: the operators are recorded where JAX dispatches them, as they run."""
    from jax._src import core

    if not hasattr(core, "EvalTrace"):
        return no_graph("JAX runs operator by operator, and this version offers no way to record them")
    note = "JAX keeps no graph without jit: these are the operators in the order in which they ran"
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
        """A later array may get the same identity as a deleted one."""
        if places.get(identity) == place:
            del places[identity]

    core.EvalTrace.process_primitive = watched
    try:
        jax.block_until_ready(call())
    finally:
        core.EvalTrace.process_primitive = process
    return graph


def profiler(job):
    return watch


def watch(program, block, folder):
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # otherwise every call of a Python function is an event
    jax.profiler.start_trace(folder, profiler_options=options)
    try:
        block()
    finally:
        jax.profiler.stop_trace()
    with gzip.open(find_profile(folder, ".trace.json.gz"), "rt") as file:
        events = json.load(file)["traceEvents"]
    return xla_timeline(write_chrome(events, folder))
